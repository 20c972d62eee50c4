import { DynamoDBStreamsClient } from '@aws-sdk/client-dynamodb-streams';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDynamoDBBackend } from '../../../src/backends/dynamodb/dynamodb.js';
import type { Table } from '../../../src/backends/dynamodb/client/requests.js';
import { Limit } from '../../../src/core/limit.js';
import { USAGE_WINDOWS } from '../../../src/core/usage/usage.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { type BucketChange, decodeChange } from '../../../src/backends/dynamodb/stream/decode.js';
import { openSdkStream } from '../../../src/backends/dynamodb/stream/worker/sdk-stream.js';
import { writeUsage } from '../../../src/backends/dynamodb/stream/usage/write-usage.js';
import { Random } from '../../../src/testing/conformance/kit/random.js';
import { fakeClock } from '../../../src/testing/fake-clock.js';
import {
  allPages,
  change,
  connectionLost,
  enter,
  NO_PAUSES,
  openStores,
  START_MS,
  startTable,
  type Stores,
  TABLE_NAME,
  type Tap,
  type TestTable,
} from '../../support/dynamodb/stores.js';
import { ENTITIES, RESOURCES, type Spent, SpendingLedger, spendAtRandom } from './usage-traffic.js';

let world: TestTable;
let streamsClient: DynamoDBStreamsClient;
beforeAll(async () => {
  world = await startTable();
  const { endpoint, region, credentials } = world.engine;
  streamsClient = new DynamoDBStreamsClient({ endpoint, region, credentials });
});
afterAll(async () => {
  streamsClient?.destroy();
  await world?.[Symbol.asyncDispose]();
});

const LIMITS = [Limit.parse('rpm:60/min:100'), Limit.parse('tpm:5000/min')];
/** Asks choose a shard at random, whatever the traffic. Only the test splits. */
const SPREAD = { paceAbove: 1e-9, splitAbove: 1e9 };

/** All records of the stream. */
async function readStream(table: Table): Promise<readonly unknown[]> {
  const stream = await openSdkStream(table, { streamsClient });
  const records: unknown[] = [];
  for (const { id } of await stream.listShards()) {
    let place: string | null = await stream.locate(id, null);
    while (place !== null) {
      const page = await stream.read(place);
      records.push(...(page?.records ?? []));
      place = page === null || page.records.length === 0 ? null : page.next;
    }
  }
  return records;
}

/** The bucket changes of one namespace, rewritten to another namespace. */
function changesOf(records: readonly unknown[], from: string, to: string): BucketChange[] {
  const copies = records.map(
    (record) => JSON.parse(JSON.stringify(record).replaceAll(`${from}/`, `${to}/`)) as unknown,
  );
  const changes = copies.map((record) => decodeChange(record, 'label'));
  expect(changes.filter(({ kind }) => kind === 'poison')).toEqual([]);
  return changes.filter((one) => one.kind === 'bucket').filter(({ ns }) => ns === to);
}

async function usageIn(stores: Stores, namespaceId: string, nowMs: number): Promise<Map<string, Spent>> {
  const found = new Map<string, Spent>();
  const call = { namespaceId, nowMs, timeoutMs: 10_000 };
  for (const entityId of ENTITIES) {
    for (const resource of RESOURCES) {
      for (const window of USAGE_WINDOWS) {
        const query = { entityId, resource, window, fromMs: 0, toMs: nowMs + 1 };
        const usages = await allPages<{ startMs: number; acquires: number; consumedMilli: Map<string, number> }>(
          (page) => stores.usage.query(call, query, page),
        );
        for (const { startMs, acquires, consumedMilli } of usages) {
          const used = [...consumedMilli].filter(([, milli]) => milli !== 0);
          const tokens = Object.fromEntries(used.map(([name, milli]) => [name, milli / 1_000]));
          found.set(`${entityId} ${resource} ${window} ${new Date(startMs).toISOString()}`, { tokens, acquires });
        }
      }
    }
  }
  return found;
}

/** Sometimes loses a write or its answer, or kills the worker before or after the write. */
function unreliable(random: Random): Tap {
  return async (operation, input, forward) => {
    const fate = operation === 'UpdateItem' ? random.whole(0, 79) : 0;
    if (fate === 1) throw connectionLost();
    if (fate === 2) throw new Error('killed');
    const output = await forward(input);
    if (fate === 3) throw connectionLost();
    if (fate === 4) throw new Error('killed');
    return output;
  };
}

/** Two concurrent workers deliver all changes in batches of random size, with duplicates and replays. */
async function deliver(table: Table, changes: readonly BucketChange[], random: Random): Promise<void> {
  let done = 0;
  const work = async (): Promise<void> => {
    while (done < changes.length) {
      const from = Math.max(0, done - random.whole(0, 40));
      const to = Math.min(changes.length, from + random.whole(1, 60));
      const batch = changes.slice(from, to).flatMap((one) => (random.whole(0, 9) === 0 ? [one, one] : [one]));
      const written = await writeUsage(table, batch).then(
        () => true,
        () => false,
      );
      if (written) done = Math.max(done, to);
    }
  };
  await Promise.all([work(), work()]);
  await writeUsage({ ...table, transport: world.transport }, changes);
}

test('usage equals what was spent, however the stream is delivered', { timeout: 120_000 }, async () => {
  const stores = openStores(world.transport);
  const { id: ns } = await enter(stores);
  const [clock, random, ledger] = [fakeClock(START_MS), new Random(7), new SpendingLedger()];
  const open = async (): Promise<RateLimiter> => {
    const backend = createDynamoDBBackend({ table: TABLE_NAME, client: world.client }, { pressure: SPREAD });
    const timeouts = { callMs: 60_000, acquireMs: 60_000 };
    return RateLimiter.open(backend, { namespace: `case-${ns}`, limits: LIMITS, clock, timeouts });
  };
  const limiters = [await open(), await open()];
  await limiters[0]!.entities.create({ id: 'team' });
  await limiters[0]!.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
  await spendAtRandom({ random, clock, limiters, table: stores.table, ns, ledger }, 400);
  await Promise.all(limiters.map(async (limiter) => limiter.close()));

  const records = await readStream(stores.table);
  const expected = ledger.used();
  expect(expected.size).toBeGreaterThan(50);
  const changes = changesOf(records, ns, ns);
  expect(new Set(changes.map(({ key }) => key.shard)).size).toBeGreaterThan(2);
  expect(changes.some(({ event }) => event === 'REMOVE')).toBe(true);

  for (const seed of [1, 2]) {
    const { id } = await enter(stores);
    const chance = new Random(seed);
    const { table } = openStores(world.transport, unreliable(chance), NO_PAUSES);
    await deliver(table, changesOf(records, ns, id), chance);
    expect(await usageIn(stores, id, clock.now())).toEqual(expected);
  }
});

/** Makes this many acquires of one user, one after the other: one change each. */
async function spendInTurn(count: number) {
  const stores = openStores(world.transport);
  const { id: ns } = await enter(stores);
  const backend = createDynamoDBBackend({ table: TABLE_NAME, client: world.client }, {});
  const limits = [Limit.parse('rpm:99999/min'), Limit.parse('tpm:99999/min')];
  const limiter = await RateLimiter.open(backend, { namespace: `case-${ns}`, limits, clock: fakeClock(START_MS) });
  for (let at = 0; at < count; at++) {
    await limiter.acquire({ entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1, tpm: 20 } });
  }
  return { stores, ns, limiter, changes: changesOf(await readStream(stores.table), ns, ns) };
}

test('batches of 100 acquires of one entity cost less than a tenth of a write unit each', async () => {
  const { ns, changes } = await spendInTurn(300);
  expect(changes).toHaveLength(300);
  let units = 0;
  const metered: Tap = async (_operation, input, forward) => {
    const output = await forward({ ...input, ReturnConsumedCapacity: 'INDEXES' });
    if (_operation === 'UpdateItem')
      units += (output as { ConsumedCapacity: { CapacityUnits: number } }).ConsumedCapacity.CapacityUnits;
    return output;
  };
  const { table, usage } = openStores(world.transport, metered);
  for (let at = 0; at < changes.length; at += 100) await writeUsage(table, changes.slice(at, at + 100));
  expect(units / changes.length).toBeLessThanOrEqual(0.1);
  const call = { namespaceId: ns, nowMs: START_MS, timeoutMs: 10_000 };
  const query = { entityId: 'user-1', resource: 'gpt-4', window: 'hourly', fromMs: 0, toMs: START_MS + 1 } as const;
  expect((await usage.query(call, query, { limit: 9, after: null })).items).toMatchObject([{ acquires: 300 }]);
});

test('spending before a namespace was deleted is counted, and nothing after it is purged', async () => {
  const { stores, ns, changes } = await spendInTurn(3);
  await stores.namespaces.delete(change(), `case-${ns}`);
  await writeUsage(stores.table, changes.slice(0, 2));
  await stores.namespaces.recover(change(), ns);
  const day = { entityId: 'user-1', resource: 'gpt-4', window: 'daily', fromMs: 0, toMs: START_MS } as const;
  const call = { namespaceId: ns, nowMs: START_MS, timeoutMs: 10_000 };
  const { items } = await stores.usage.query(call, day, { limit: 9, after: null });
  expect(items).toMatchObject([{ acquires: 2 }]);

  await stores.namespaces.delete(change(), `case-${ns}`);
  expect(await stores.namespaces.purge(change(), ns)).toBeGreaterThan(0);
  await writeUsage(stores.table, changes);
  expect(await stores.namespaces.purge(change(), ns)).toBe(0);
});
