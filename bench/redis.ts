import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { startEngine } from 'headgate/testing/dynamodb';
import { Redis } from 'ioredis';
import { RateLimiterRedis, RateLimiterUnion } from 'rate-limiter-flexible';
import { freePort } from '../src/local/engine/free-port.js';
import { clientOf, createTables, headgate, leanReach } from './dynamodb-peers.js';
import { compareThroughput } from './load.js';
import type { Contender } from './race.js';
import { sized } from './settings.js';
import type { Row } from './table.js';

const PLENTY = 1_000_000_000;
const AT_ONCE = 256;
const MANY = Array.from({ length: sized(10_000) }, (_, index) => `user-${index}`);

/** Two limits per key on both sides: one bucket on DynamoDB, two counters on Redis. */
export async function* redisRows(): AsyncGenerator<Row> {
  if (spawnSync('redis-server', ['--version']).error !== undefined) {
    console.log('rate-limiter-flexible on Redis: skipped, no redis-server');
    return;
  }
  await using engine = await startEngine('dynoxide');
  const client = clientOf(engine, engine.endpoint);
  await createTables(client);
  client.destroy();
  const port = await freePort();
  const server = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
    {
      stdio: 'ignore',
    },
  );
  process.once('exit', () => server.kill());
  const redis = new Redis(port, '127.0.0.1', { retryStrategy: () => 50, maxRetriesPerRequest: 200 });
  // A refused connection while the server starts is tried again.
  redis.on('error', () => {});
  try {
    await redis.ping();
    const theirs = flexible(redis);
    for (const [keys, where, goal] of [
      [['hot'], 'one key', { goal: 1 }],
      [MANY, '10,000 keys', {}],
    ] as const) {
      const ours = await headgate(leanReach(engine), keys);
      const load = { keys, concurrency: AT_ONCE, roundMs: 1_000 };
      const name = `acquire / RateLimiterRedis, 2 limits, ${AT_ONCE} callers on ${where}`;
      yield { name, unit: 'ops/s', ...goal, ...(await compareThroughput(load, ours, theirs)) };
    }
  } finally {
    redis.disconnect();
    await ended(server);
  }
}

function flexible(storeClient: Redis): Contender {
  const [rph, tph] = ['rph', 'tph'].map(
    (keyPrefix) => new RateLimiterRedis({ storeClient, keyPrefix, points: PLENTY, duration: 3_600 }),
  );
  if (rph === undefined || tph === undefined) throw new Error('Expected two limiters');
  const union = new RateLimiterUnion(rph, tph);
  return async (key) => {
    await union.consume(key, 1);
  };
}

async function ended(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const exit = once(server, 'exit');
  server.kill();
  await exit;
}
