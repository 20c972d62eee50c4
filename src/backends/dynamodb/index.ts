/** This entry point imports the AWS SDK by its literal name, so that bundlers include it. */
import type { Backend } from '../../backend.js';
import { type CreateTableOptions, createTableThrough } from './schema/create-table.js';
import { createDynamoDBBackend, type DynamoDBOptions } from './dynamodb.js';
import type { LoadSdk, SdkOptions } from './client/sdk-transport.js';
import type { NamedTable } from './table/table-name.js';

export type { CreateTableOptions, DynamoDBOptions, NamedTable, SdkOptions };

const loadSdk: LoadSdk = async () => import('@aws-sdk/client-dynamodb');

/** A store in one Amazon DynamoDB table, which processes on many machines share. */
export function dynamodb(options: DynamoDBOptions): Backend {
  return createDynamoDBBackend(options, { loadSdk });
}

/**
 * Creates a table for tests and development, with the namespace `default`, and resolves once the table can be used. A
 * ready table is not changed. A table that is half created, or that another process is creating now, is completed.
 */
export async function createTable(options: CreateTableOptions): Promise<void> {
  await createTableThrough(options, loadSdk);
}
