/** Made for bundlers, too: here the AWS SDK is imported by its name. */
import type { Backend } from '../../backend.js';
import { type CreateTableOptions, createTableThrough } from './table/create-table.js';
import { createDynamoDBBackend, type DynamoDBOptions } from './dynamodb.js';
import type { LoadSdk } from './client/sdk-transport.js';

export type { CreateTableOptions, DynamoDBOptions };

const loadSdk: LoadSdk = async () => import('@aws-sdk/client-dynamodb');

/** A store that processes of many machines share: one table of Amazon DynamoDB. */
export function dynamodb(options: DynamoDBOptions): Backend {
  return createDynamoDBBackend(options, { loadSdk });
}

/**
 * Makes a table for tests and development, with the namespace `default`, and resolves once it can be used. A table that
 * is ready stays as it is; one that was left half made, or that somebody else makes at this moment, is finished.
 */
export async function createTable(options: CreateTableOptions): Promise<void> {
  await createTableThrough(options, loadSdk);
}
