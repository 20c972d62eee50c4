import { DynamoDBClient, CreateTableCommand } from '@aws-sdk/client-dynamodb';
import { tableDefinition } from '../../../src/backends/dynamodb/table/table-definition.js';
import type { AwsOptions } from '../../../src/infra/stack/aws/aws-client.js';
import type { ResourceChange, StackTools, Watcher } from '../../../src/infra/stack/stack-tools.js';
import type { StackDeployRequest } from '../../../src/infra/stack/deploy-stack.js';
import type { Bundle } from '../../../src/infra/stack/upload-code.js';
import { zipCode } from '../../../src/infra/stack/zip-code.js';
import { sdkStackTools } from '../../../src/infra/stack/aws/sdk-stack-tools.js';
import { chooseNames } from '../../../src/infra/stack/stack-name.js';
import { buildTemplate } from '../../../src/infra/template.js';
import type { Engine } from '../../../src/testing/dynamodb/index.js';

const REGION = 'eu-west-1';
export const BUNDLES: readonly Bundle[] = [
  { logicalId: 'StreamFunction', file: 'stream.cjs', code: zipCode('exports.handler = 1;') },
  { logicalId: 'ReconcilerFunction', file: 'reconciler.cjs', code: zipCode('exports.handler = 2;') },
];

export interface StackWorld {
  readonly tools: StackTools;
  readonly watcher: Watcher;
  /** The reported events and steps, in order. */
  readonly told: string[];
  /** The time that was waited, by the fake clock. */
  waitedMs(): number;
}

export type Limits = Pick<AwsOptions, 'attempts' | 'callMs'>;

/**
 * Tools that send requests to a server of the test, and to a real engine for the table. Only waiting advances the
 * clock.
 */
export function stackWorld(endpoint: string, engine: Engine | null = null, limits: Limits = {}): StackWorld {
  process.env['AWS_ACCESS_KEY_ID'] = 'AKIAIOSFODNN7EXAMPLE';
  process.env['AWS_SECRET_ACCESS_KEY'] = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';
  const tools = sdkStackTools({ endpoint, region: REGION, callMs: 5_000, ...limits });
  const onEngine = engine === null ? tools : sdkStackTools({ endpoint: engine.endpoint, region: engine.region });
  const told: string[] = [];
  let nowMs = 0;
  let ids = 0;
  return {
    tools: {
      ...tools,
      tables: onEngine.tables,
      newId: () => `headgate-${(ids += 1)}`,
      now: () => nowMs,
      pause: (ms) => {
        nowMs += ms;
        return Promise.resolve();
      },
    },
    watcher: {
      onEvent: ({ status, logicalId }) => void told.push(`${status} ${logicalId}`),
      onStep: (text) => void told.push(text),
    },
    told,
    waitedMs: () => nowMs,
  };
}

export interface Wanted extends StackDeployRequest {
  readonly confirmed: (readonly ResourceChange[])[];
}

/** A deployment of `headgate-pre` that confirms every change. */
export function wanted(parts: Partial<StackDeployRequest> = {}): Wanted {
  const confirmed: (readonly ResourceChange[])[] = [];
  return {
    names: chooseNames({ env: 'pre' }),
    template: buildTemplate(),
    version: '1.0.0',
    given: {},
    dryRun: false,
    allowReplacement: false,
    bundles: BUNDLES,
    confirmAdoption: null,
    confirmed,
    confirm: (_action, changes) => {
      confirmed.push(changes);
      return Promise.resolve();
    },
    ...parts,
  };
}

/** An empty table as CloudFormation creates it. */
export async function makeEmptyTable({ endpoint, region, credentials }: Engine, name: string): Promise<void> {
  const client = new DynamoDBClient({ endpoint, region, credentials });
  await client.send(new CreateTableCommand(tableDefinition(name)));
  client.destroy();
}
