import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createTable } from '../../src/backends/dynamodb/create-table.js';
import { dynamodb } from '../../src/backends/dynamodb/dynamodb.js';
import { describeBackend } from '../../src/testing/backend.js';
import { type Engine, startEngine } from '../../src/testing/dynamodb/index.js';

let engine: Engine;
const table = `t-${randomUUID()}`;

beforeAll(async () => {
  engine = await startEngine('dynoxide');
  process.env['AWS_ACCESS_KEY_ID'] = engine.credentials.accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = engine.credentials.secretAccessKey;
  await createTable({ tableName: table, endpoint: engine.endpoint, region: engine.region });
});
afterAll(async () => engine?.stop());

describeBackend('dynamodb', {
  describe,
  test,
  create: () => dynamodb({ table, endpoint: engine.endpoint, region: engine.region }),
});
