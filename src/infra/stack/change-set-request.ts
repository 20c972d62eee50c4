import { InfrastructureError } from '../../core/errors.js';
import type { Template } from '../template.js';
import { PARAMETERS } from '../template/names.js';
import type { ChangeSetRequest, Stack } from './cloudformation.js';
import { chooseParameters } from './parameters.js';
import type { StackNames } from './stack-name.js';
import { ENV_TAG, isEmptyShell, VERSION_TAG } from './stack-status.js';

/** What CloudFormation takes in a request. More would need a bucket, of which there is none beforehand. */
export const MOST_TEMPLATE_BYTES = 51_200;

interface Wanted {
  readonly names: StackNames;
  readonly template: Template;
  readonly version: string;
  readonly given: Readonly<Record<string, string>>;
}

/** The request for a change set that brings `stack` to the template; null: there is no stack yet. */
export function buildChangeSetRequest(
  { names, template, version, given }: Wanted,
  stack: Stack | null,
  name: string,
): ChangeSetRequest {
  const existing = stack === null || isEmptyShell(stack) ? null : stack;
  const born = existing === null ? { [PARAMETERS.tableName]: names.table } : {};
  return {
    stack: names.stack,
    name,
    type: existing === null ? 'CREATE' : 'UPDATE',
    template: templateBody(template),
    parameters: chooseParameters(template, existing, { ...given, ...born }),
    // Tags that are not sent are taken away: those that somebody else gave it stay.
    tags: { ...existing?.tags, [VERSION_TAG]: version, ...(names.env === null ? {} : { [ENV_TAG]: names.env }) },
  };
}

function templateBody(template: Template): string {
  const body = JSON.stringify(template);
  const bytes = Buffer.byteLength(body);
  if (bytes <= MOST_TEMPLATE_BYTES) return body;
  const message = `The template has ${bytes} bytes, CloudFormation takes ${MOST_TEMPLATE_BYTES} without a bucket`;
  throw new InfrastructureError('infrastructure.template-too-large', message);
}
