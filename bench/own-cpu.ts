import { createDynamoDBBackend } from '../src/backends/dynamodb/dynamodb.js';
import { openTransport } from '../src/backends/dynamodb/client/open-transport.js';
import { Limit, RateLimiter } from '../src/index.js';
import { type Engine, startEngine } from '../src/testing/dynamodb/index.js';
import { answeringTransport } from './answering-transport.js';
import { clientOf, createTables, TABLE } from './dynamodb-peers.js';
import { spreadOf } from './spread.js';
import { callEach } from './load.js';
import { heaviestFunctions } from './profile.js';
import type { Contender } from './race.js';

const WARM_UP = 10;
const ROUNDS = 20;
const PATIENCE_MS = 600_000;
/** Without pauses between the writes of a busy bucket, and without splits. */
const UNPACED = { paceAbove: Number.POSITIVE_INFINITY, splitAbove: Number.POSITIVE_INFINITY };

const MANY = Array.from({ length: 1_000 }, (_, index) => `user-${index}`);
const RATES = [Limit.perMinute('rpm', 10_000_000), Limit.perMinute('tpm', 10_000_000)];
const SLOTS = [...RATES, Limit.concurrent('jobs', 1_000)];

interface Case {
  readonly name: string;
  readonly buckets: readonly string[];
  readonly callers: number;
  readonly operations: number;
  readonly limits: readonly Limit[];
}

const CASES: readonly Case[] = [
  { name: '1 caller, 1,000 buckets, two rates', buckets: MANY, callers: 1, operations: 4_000, limits: RATES },
  { name: '256 callers, 1 bucket, two rates', buckets: ['hot'], callers: 256, operations: 20_000, limits: RATES },
  {
    name: '64 callers, 1 bucket, two rates and a slot',
    buckets: ['held'],
    callers: 64,
    operations: 4_000,
    limits: SLOTS,
  },
];

/** Prints the CPU that Headgate itself uses for an acquire and its commit on DynamoDB, and which functions use most of it. */
export async function showOwnCpu(): Promise<void> {
  await using engine = await startEngine('dynoxide');
  await prepare(engine);
  for (const each of CASES) {
    const round = await openCase(engine, each);
    const rounds: number[] = [];
    for (let at = 0; at < WARM_UP + ROUNDS; at++) rounds.push(await round());
    console.log(`${each.name}: ${spreadOf(rounds.slice(WARM_UP)).median.toFixed(0)} ns`);
    for (const { share, at } of await heaviestFunctions(round)) console.log(`  ${(100 * share).toFixed(1)} %  ${at}`);
  }
}

async function prepare(engine: Engine): Promise<void> {
  process.env['AWS_ACCESS_KEY_ID'] = engine.credentials.accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = engine.credentials.secretAccessKey;
  const client = clientOf(engine, engine.endpoint);
  await createTables(client);
  client.destroy();
}

/** Returns a function that measures one round of a case, in nanoseconds of CPU per acquire. */
async function openCase({ endpoint, region }: Engine, each: Case): Promise<() => Promise<number>> {
  const { buckets, callers, operations, limits } = each;
  const transport = answeringTransport(openTransport({ endpoint, region }), callers === 1 ? atOnce : nextTurn);
  const backend = createDynamoDBBackend({ table: TABLE }, { transport, pressure: UNPACED });
  const timeouts = { callMs: PATIENCE_MS, acquireMs: PATIENCE_MS };
  const limiter = await RateLimiter.open(backend, { limits, timeouts, configCacheMs: PATIENCE_MS });
  const consume = Object.fromEntries(limits.map((limit) => [limit.name, 1]));
  const acquire: Contender = async (entityId) => {
    const lease = await limiter.acquire({ entityId, resource: 'gpt-4', consume });
    await lease.commit();
  };
  const keys = Array.from({ length: operations }, (_, at) => buckets[at % buckets.length] ?? '');
  return async () => cpuNs(async () => callEach(keys, callers, acquire), operations);
}

async function cpuNs(work: () => Promise<unknown>, operations: number): Promise<number> {
  const start = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(start);
  return ((user + system) * 1_000) / operations;
}

async function atOnce(): Promise<void> {}

/** As over a network, all callers have asked before the answer comes. */
async function nextTurn(): Promise<unknown> {
  return new Promise(setImmediate);
}
