import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createTable } from '../../../../src/backends/dynamodb/index.js';
import { deadlineIn } from '../../../../src/machine-time.js';
import { buildShardItem } from '../../../../src/backends/dynamodb/expressions/shard-item.js';
import { decodeShard, type ShardImage } from '../../../../src/backends/dynamodb/table/items.js';
import { buildShardKey, type ShardKey } from '../../../../src/backends/dynamodb/table/keys.js';
import { type Answer, readItem, send, type Table } from '../../../../src/backends/dynamodb/client/requests.js';
import { sdkTransport } from '../../../../src/backends/dynamodb/client/sdk-transport.js';
import type { Operation, Operations } from '../../../../src/backends/dynamodb/client/transport.js';
import { type Engine, type EngineName, startEngine } from '../../../../src/testing/dynamodb/index.js';

export const TABLE_NAME = 'headgate-shards';

/** An engine with one table, to which a test writes shards directly. */
export interface ShardEngine extends AsyncDisposable {
  readonly engine: Engine;
  readonly table: Table;
  put(ns: string, image: ShardImage): Promise<void>;
  read(ns: string, key: ShardKey): Promise<ShardImage | null>;
  delete(ns: string, key: ShardKey): Promise<void>;
  send<Op extends Operation>(operation: Op, input: Operations[Op][0]): Promise<Answer<Op>>;
}

export async function startShardEngine(name?: EngineName): Promise<ShardEngine> {
  const engine = await startEngine(name);
  const client = clientOf(engine, engine.endpoint);
  await createTable({ tableName: TABLE_NAME, client });
  const table: Table = { name: TABLE_NAME, transport: sdkTransport({ client }), random: Math.random };
  return {
    engine,
    table,
    async put(ns, image) {
      const input = { TableName: TABLE_NAME, Item: buildShardItem(ns, image) };
      await table.transport.send('PutItem', input, deadlineIn(10_000));
    },
    async read(ns, key) {
      const item = await readItem(table, buildShardKey(ns, key), deadlineIn(10_000));
      return item === undefined ? null : decodeShard(item, []);
    },
    async delete(ns, key) {
      const { PK, SK } = buildShardKey(ns, key);
      const request = { DeleteRequest: { Key: { PK: { S: PK }, SK: { S: SK } } } };
      await table.transport.send('BatchWriteItem', { RequestItems: { [TABLE_NAME]: [request] } }, deadlineIn(10_000));
    },
    send: async (operation, input) => send(table, operation, input, deadlineIn(10_000)),
    async [Symbol.asyncDispose]() {
      client.destroy();
      await engine.stop();
    },
  };
}

/** A client without retries, so that a test sees each answer. */
export function clientOf(engine: Pick<Engine, 'region' | 'credentials'>, endpoint: string): DynamoDBClient {
  return new DynamoDBClient({ endpoint, region: engine.region, credentials: engine.credentials, maxAttempts: 1 });
}
