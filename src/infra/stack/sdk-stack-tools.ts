import { randomUUID } from 'node:crypto';
import { pause } from '../../backends/dynamodb/client/deadline.js';
import { runMigrations } from '../../backends/dynamodb/migrations/run.js';
import { prepareTable, readTableVersion } from '../../backends/dynamodb/table/prepare-table.js';
import type { AwsOptions } from './aws-client.js';
import { sdkCloudFormation } from './sdk-cloudformation.js';
import { sdkFunctions } from './sdk-functions.js';
import { readTableFacts } from './sdk-table-facts.js';
import type { StackTools } from './stack-tools.js';

/** Tools that call AWS. Nothing is loaded or sent before the first call. */
export function sdkStackTools(options: AwsOptions): StackTools & { close(): void } {
  const { region, endpoint } = options;
  const target = { ...(region === undefined ? {} : { region }), ...(endpoint === undefined ? {} : { endpoint }) };
  const cloudformation = sdkCloudFormation(options);
  const functions = sdkFunctions(options);
  return {
    cloudformation,
    functions,
    tables: {
      prepare: async (tableName) => prepareTable({ ...target, tableName }),
      readVersion: async (tableName) => readTableVersion({ ...target, tableName }),
      readFacts: async (tableName) => readTableFacts(options, tableName),
      migrate: async (migration) => runMigrations({ ...target, ...migration }),
    },
    newId: () => `headgate-${randomUUID()}`,
    pause,
    now: () => performance.now(),
    close() {
      cloudformation.close();
      functions.close();
    },
  };
}
