import { alarms } from './template/monitoring/alarms.js';
import { archive } from './template/storage/archive.js';
import { dashboard } from './template/monitoring/dashboard.js';
import { functions } from './template/functions/functions.js';
import { functionRoles } from './template/access/function-roles.js';
import type { Output, Parameter, Resources, Value } from './template/intrinsics.js';
import { logMetrics } from './template/monitoring/log-metrics.js';
import { logs } from './template/functions/logs.js';
import { outputs } from './template/outputs.js';
import { conditions, parameters } from './template/parameters.js';
import { keyPolicies } from './template/access/key-policies.js';
import { policies } from './template/access/policies.js';
import { appRoles } from './template/access/roles.js';
import { schedule } from './template/functions/schedule.js';
import { streamSource } from './template/functions/stream-source.js';
import { table } from './template/storage/table.js';

/** A CloudFormation template, as plain data. */
export interface Template {
  readonly AWSTemplateFormatVersion: '2010-09-09';
  readonly Description: string;
  readonly Metadata: { readonly [key: string]: Value };
  readonly Parameters: Readonly<Record<string, Parameter>>;
  readonly Conditions: Readonly<Record<string, Value>>;
  readonly Resources: Resources;
  readonly Outputs: Readonly<Record<string, Output>>;
}

/** The template of all environments. Parameters hold the differences between them. */
export function buildTemplate(): Template {
  return {
    AWSTemplateFormatVersion: '2010-09-09',
    Description: 'Headgate: rate limits, token limits and concurrency slots that many processes share',
    Metadata: { Headgate: { Template: 1 } },
    Parameters: parameters(),
    Conditions: conditions(),
    Resources: {
      ...table(),
      ...archive(),
      ...logs(),
      ...logMetrics(),
      ...functionRoles(),
      ...functions(),
      ...streamSource(),
      ...schedule(),
      ...alarms(),
      ...dashboard(),
      ...policies(),
      ...keyPolicies(),
      ...appRoles(),
    },
    Outputs: outputs(),
  };
}
