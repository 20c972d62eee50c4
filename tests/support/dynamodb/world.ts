import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createTable } from '../../../src/backends/dynamodb/index.js';
import { deadlineIn } from '../../../src/machine-time.js';
import { createDynamoDBBackend, type DynamoDBInternals } from '../../../src/backends/dynamodb/dynamodb.js';
import { decodeShard, type ShardImage } from '../../../src/backends/dynamodb/table/items.js';
import { buildShardKey } from '../../../src/backends/dynamodb/table/keys.js';
import { readItems } from '../../../src/backends/dynamodb/client/batches.js';
import type { Table } from '../../../src/backends/dynamodb/client/requests.js';
import { sdkTransport } from '../../../src/backends/dynamodb/client/sdk-transport.js';
import type { LimiterOptions } from '../../../src/limiter/options.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import {
  type Engine,
  type EngineName,
  type FaultProxy,
  type FaultProxyOptions,
  findEngine,
  startEngine,
  startFaultProxy,
} from '../../../src/testing/dynamodb/index.js';
import { type FakeClock, fakeClock } from '../../../src/testing/fake-clock.js';

const found = findEngine();

/** Whether an engine is available, and the note for a title if not. */
export const ENGINE = {
  missing: found.status !== 'available',
  note: found.status === 'available' ? '' : ` (skipped: ${found.reason})`,
};

const TABLE_NAME = 'headgate-world';
const TIMEOUT_MS = 10_000;

/** An engine with a table, and a proxy between every limiter and the engine. */
export interface DynamoWorld extends AsyncDisposable {
  readonly engine: Engine;
  readonly proxy: FaultProxy;
  /** The table without the proxy. */
  readonly table: Table;
  /** A new namespace. */
  space(): Promise<Space>;
}

export interface Space {
  readonly namespace: string;
  /** The id of the namespace. */
  readonly ns: string;
  readonly clock: FakeClock;
  /** Errors of background work of every limiter of this space. */
  readonly errors: unknown[];
  /** Opens a limiter with its own client and caches, like a separate process. */
  open(options?: LimiterOptions, internals?: DynamoDBInternals): Promise<RateLimiter>;
  /** The shards of a bucket as they are stored, read without the proxy. */
  shards(entityId: string, resource: string): Promise<readonly ShardImage[]>;
}

/** Uses the first available engine unless one is named. */
export async function startWorld(options: FaultProxyOptions = {}, name?: EngineName): Promise<DynamoWorld> {
  const engine = await startEngine(name);
  process.env['AWS_ACCESS_KEY_ID'] = engine.credentials.accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = engine.credentials.secretAccessKey;
  const { region, credentials } = engine;
  const client = new DynamoDBClient({ endpoint: engine.endpoint, region, credentials });
  await createTable({ tableName: TABLE_NAME, client });
  const table: Table = { name: TABLE_NAME, transport: sdkTransport({ client }), random: Math.random };
  const proxy = await startFaultProxy(engine.endpoint, options);
  const opened: RateLimiter[] = [];
  const reach = { table: TABLE_NAME, region, endpoint: proxy.endpoint };
  const registry = await RateLimiter.open(createDynamoDBBackend({ ...reach, endpoint: engine.endpoint }, {}));
  opened.push(registry);
  let spaces = 0;

  return {
    engine,
    proxy,
    table,
    async space() {
      const namespace = `space-${(spaces += 1)}`;
      const { id: ns } = await registry.namespaces.register(namespace);
      const clock = fakeClock();
      const errors: unknown[] = [];
      return {
        namespace,
        ns,
        clock,
        errors,
        async open(limiterOptions = {}, internals = {}) {
          const limiter = await RateLimiter.open(createDynamoDBBackend(reach, internals), {
            namespace,
            clock,
            onError: (error) => errors.push(error),
            timeouts: { callMs: TIMEOUT_MS, acquireMs: TIMEOUT_MS },
            ...limiterOptions,
          });
          opened.push(limiter);
          return limiter;
        },
        async shards(entityId, resource) {
          const shards: ShardImage[] = [];
          // A new shard may have a larger shard count than its parent.
          for (let next = 0, count = 1; next < count;) {
            const numbers = Array.from({ length: count - next }, (_, more) => next + more);
            const keys = numbers.map((shard) => buildShardKey(ns, { entityId, resource, shard }));
            next = count;
            for (const item of await readItems(table, keys, deadlineIn(TIMEOUT_MS))) {
              if (item !== undefined) shards.push(decodeShard(item, []));
            }
            count = Math.max(count, ...shards.map(({ shardCount }) => shardCount));
          }
          return shards;
        },
      };
    },
    async [Symbol.asyncDispose]() {
      for (const limiter of opened) await limiter.close();
      client.destroy();
      await proxy.stop();
      await engine.stop();
    },
  };
}
