import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deadlineIn } from '../../../src/machine-time.js';
import { buildShardKey } from '../../../src/backends/dynamodb/table/keys.js';
import { deleteItems } from '../../../src/backends/dynamodb/client/batches.js';
import { ValidationError } from '../../../src/core/errors.js';
import { Limit } from '../../../src/core/limit.js';
import type { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { readCheckpoints } from '../../../src/backends/dynamodb/stream/worker/checkpoints.js';
import { DeferredUsage } from '../../../src/backends/dynamodb/stream/usage/deferred-usage.js';
import { processBatch } from '../../../src/backends/dynamodb/stream/process-batch.js';
import { rebuildUsage } from '../../../src/backends/dynamodb/stream/rebuild/rebuild.js';
import { SplitAhead } from '../../../src/backends/dynamodb/stream/split-ahead.js';
import type { StreamApi } from '../../../src/backends/dynamodb/stream/worker/stream-api.js';
import { runWorker } from '../../../src/backends/dynamodb/stream/worker/worker.js';
import { shapeOf, splitShard, spreading } from '../../support/dynamodb/shard/shards.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../support/dynamodb/world.js';
import { until } from '../../support/models/hand-time.js';
import { batchTools, openStream, readRecords, workOff } from '../../support/stream/world.js';
import { readTotals, UsageLedger } from '../../support/stream/usage-ledger.js';

const LIMITS = [Limit.perMinute('rpm', 60_000), Limit.perMinute('tpm', 6_000_000)];
const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1, tpm: 100 } };

/** The listener for refused usage, in tests in which nothing is refused. */
const refuse = (): never => expect.fail('the usage was refused');

describe.skipIf(ENGINE.missing)(`workers of a stream${ENGINE.note}`, () => {
  let world: DynamoWorld;
  let stream: StreamApi;

  beforeAll(async () => {
    world = await startWorld({ record: true, askForCapacity: true });
    stream = await openStream(world);
  });
  afterAll(async () => {
    stream?.close();
    await world?.[Symbol.asyncDispose]();
  });

  const ofSpace = async (ns: string) =>
    (await readRecords(stream)).filter((record) => JSON.stringify(record).includes(`"${ns}/BUCKET#`));

  test('usage of one busy entity costs at most 0.1 write units per acquire in batches of 100', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS });
    for (let taken = 0; taken < 300; taken++) await limiter.acquire(ASK);
    const records = await ofSpace(space.ns);
    expect(records).toHaveLength(300);
    let [writes, writeUnits] = [0, 0];
    const { transport } = world.table;
    const table = {
      ...world.table,
      transport: {
        ...transport,
        send: async (operation, input, deadline) => {
          const asked = { ...input, ReturnConsumedCapacity: 'INDEXES' } as typeof input;
          const output = await transport.send(operation, asked, deadline);
          const { ConsumedCapacity: used } = output as { ConsumedCapacity?: { CapacityUnits?: number } };
          if (operation === 'UpdateItem') {
            writes += 1;
            writeUnits += used?.CapacityUnits ?? Number.NaN;
          }
          return output;
        },
      } satisfies typeof transport,
    };
    const deferred = new DeferredUsage(60_000);
    for (let at = 0; at < 300; at += 100) {
      const tools = batchTools(table, { now: () => at * 100 });
      await processBatch(tools, stream.label, records.slice(at, at + 100), deferred);
    }
    expect([deferred.isDue(59_999), deferred.isDue(60_000)]).toEqual([false, true]);
    // One created hour, which is updated twice.
    expect([writes, writeUnits]).toEqual([3, 4]);
    await deferred.write(table, refuse);
    // A day and a month. They are written once, for 2 and 3 units because they are created.
    expect([writes, writeUnits]).toEqual([5, 9]);
    expect(deferred.isEmpty).toBe(true);
    expect(writeUnits / 300).toBeLessThanOrEqual(0.1);
    expect(Object.values(await readTotals(limiter, ['gpt-4']))).toEqual(
      [1, 2, 3].map(() => ({ rpm: 300, tpm: 30_000, acquires: 300 })),
    );
  });

  test('a worker defers days and months for a minute, holds its checkpoint back until then, and writes them when it stops', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS });
    await workOff(world);
    await limiter.acquire(ASK);
    const { endpoint, region } = world.engine;
    const stop = new AbortController();
    let read = (): void => {};
    const isRead = new Promise<void>((resolve) => (read = resolve));
    const worker = runWorker({
      table: world.table.name,
      endpoint,
      region,
      leaseMs: 1_000,
      pollMs: 5,
      progressMs: 5,
      signal: stop.signal,
      onProgress: ({ records, caughtUp }) => {
        if (records > 0 && caughtUp) read();
      },
    });
    const checkpoint = async () => [...(await readCheckpoints(world.table, stream.label)).values()][0];
    await isRead;
    const before = await checkpoint();
    expect(Object.keys(await readTotals(limiter, ['gpt-4']))).toEqual([expect.stringContaining('hourly')]);
    // The worker renews its lease of the shard, without a newer sequence number.
    let later = before;
    while (later?.untilMs === before?.untilMs) later = await checkpoint();
    expect(later?.sequenceNumber).toBe(before?.sequenceNumber);
    stop.abort();
    await worker;
    expect((await checkpoint())?.sequenceNumber).not.toBe(before?.sequenceNumber);
    expect(Object.values(await readTotals(limiter, ['gpt-4']))).toEqual(
      [1, 2, 3].map(() => ({ ...ASK.consume, acquires: 1 })),
    );
  });

  test('only deferred usage that failed is written again, and none after a purge', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS });
    await limiter.acquire(ASK);
    const records = await ofSpace(space.ns);
    const sent: string[] = [];
    let failing = true;
    const { transport } = world.table;
    const send: typeof transport.send = async (operation, input, deadline) => {
      const window = /#USAGE#[^"]+#(daily|monthly)#/.exec(JSON.stringify(input))?.[1];
      if (window !== undefined) sent.push(window);
      if (failing && window === 'monthly') throw new TypeError('it was not sent');
      return transport.send(operation, input, deadline);
    };
    const table = { ...world.table, transport: { ...transport, send } };
    const deferred = new DeferredUsage(60_000);
    await processBatch(batchTools(world.table), stream.label, records, deferred);
    await expect(deferred.write(table, refuse)).rejects.toThrow('it was not sent');
    expect([sent, deferred.isEmpty, deferred.isDue(0)]).toEqual([['daily', 'monthly'], false, true]);
    failing = false;
    await deferred.write(table, refuse);
    expect([sent, deferred.isEmpty, deferred.isDue(60_000)]).toEqual([['daily', 'monthly', 'monthly'], true, false]);

    await processBatch(batchTools(world.table), stream.label, records, deferred);
    const registry = (await (await world.space()).open()).namespaces;
    await registry.delete(space.namespace);
    await registry.purge(space.ns);
    await deferred.write(table, refuse);
    expect([sent.length, deferred.isEmpty]).toEqual([3, true]);
  });

  test('usage does not decrease when a bucket is deleted and created again', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS });
    const ledger = new UsageLedger();
    await limiter.acquire(ASK);
    const key = buildShardKey(space.ns, { entityId: 'user-1', resource: 'gpt-4', shard: 0 });
    await deleteItems(world.table, [key], deadlineIn(10_000));
    await (await space.open({ limits: LIMITS })).acquire(ASK);
    for (const _ of [1, 2]) ledger.note('user-1', 'gpt-4', space.clock.now(), { ...ASK.consume, acquires: 1 });
    await workOff(world);
    expect(await readTotals(limiter, ['gpt-4'])).toEqual(ledger.totals());
  });

  test('a bucket with too many writes is split, and the sum of its shards stays the same', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS });
    for (let second = 0; second < 5; second++) {
      for (let taken = 0; taken < 5; taken++) await limiter.acquire(ASK);
      await space.clock.advance(1_000);
    }
    const splitAhead = new SplitAhead(world.table, { paceAbove: 1, splitAbove: 2 });
    const tools = batchTools(world.table, { splitAhead, now: () => space.clock.now() });
    expect(await processBatch(tools, stream.label, await ofSpace(space.ns))).toMatchObject({ splits: 1, failures: [] });
    expect((await space.shards('user-1', 'gpt-4')).map(({ shardCount }) => shardCount)).toEqual([2, 2]);
    expect(await limiter.buckets.get(ASK)).toMatchObject({ acquires: 25 });
    const [rpm] = (await limiter.buckets.get(ASK))?.limits ?? [];
    expect(rpm).toMatchObject({ available: 60_000, consumed: 25 });
    expect(tools.errors).toEqual([]);
  });

  test('a worker completes a split that another process left unfinished', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS }, spreading());
    await limiter.acquire(ASK);
    for (const _ of [1, 2]) await splitShard(world, space, ASK, 0);
    const shape = async () => shapeOf(await space.shards('user-1', 'gpt-4'));
    expect(await shape()).toBe('0/4 1/2 2/4');
    for (let taken = 0; taken < 12; taken++) await limiter.acquire(ASK);
    const tools = batchTools(world.table, { splitAhead: new SplitAhead(world.table), now: () => space.clock.now() });
    expect(await processBatch(tools, stream.label, await ofSpace(space.ns))).toMatchObject({ splits: 1, failures: [] });
    expect(await shape()).toBe('0/4 1/4 2/4 3/4');
    expect(await limiter.buckets.get(ASK)).toMatchObject({ acquires: 13 });
    expect(tools.errors).toEqual([]);
  });

  test.each([
    ['leaseMs', 999, 'from 1000 to'],
    ['rollupMs', 3_600_001, 'to 3600000'],
    ['pollMs', 0, 'from 1 to'],
  ])('a worker with %s of %i is refused before it sends a request', async (option, ms, range) => {
    const worker = runWorker({ table: world.table.name, [option]: ms });
    await expect(worker).rejects.toThrow(ValidationError);
    await expect(worker).rejects.toThrow(range);
  });

  test('a rebuild adds what the stream has lost to the current windows, once', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS });
    const ledger = new UsageLedger();
    for (let taken = 0; taken < 4; taken++) await limiter.acquire(ASK);
    // As if a day had passed: the changes were never counted, and the checkpoint is behind them.
    await space.clock.advance(86_400_000);
    const records = await readRecords(stream);
    await workOff(world, {});
    const usage = await readTotals(limiter, ['gpt-4']);
    expect(Object.keys(usage)).toHaveLength(3);
    expect(records.length).toBeGreaterThan(4);
    await removeUsage(space.ns, 'user-1');
    const { endpoint, region } = world.engine;
    const { clock, namespace } = space;
    const job = { table: world.table.name, endpoint, region, namespace, entityId: 'user-1', resource: 'gpt-4', clock };
    const addedMilli = new Map([
      ['rpm', 4_000],
      ['tpm', 400_000],
    ]);
    expect(await rebuildUsage(job)).toMatchObject({ addedMilli, acquires: 4, expired: 0 });
    expect(await rebuildUsage(job)).toMatchObject({ addedMilli: new Map(), acquires: 0 });
    ledger.note('user-1', 'gpt-4', clock.now(), { rpm: 4, tpm: 400, acquires: 4 });
    expect(await readTotals(limiter, ['gpt-4'])).toEqual(ledger.totals());
    // Changes that are still in the stream are counted in their own windows, not as lost.
    await limiter.acquire(ASK);
    expect(await rebuildUsage(job)).toMatchObject({ addedMilli: new Map(), acquires: 0 });
    ledger.note('user-1', 'gpt-4', clock.now(), { ...ASK.consume, acquires: 1 });
    expect(await readTotals(limiter, ['gpt-4'])).toEqual(ledger.totals());
    await workOff(world);
    expect(await readTotals(limiter, ['gpt-4'])).toEqual(ledger.totals());
  });

  /** Removes the usage records of an entity, as if they had never been written. */
  const removeUsage = async (ns: string, entityId: string): Promise<void> => {
    const PK = `${ns}/ENTITY#${entityId}`;
    const input = {
      TableName: world.table.name,
      KeyConditionExpression: 'PK = :pk',
      ExpressionAttributeValues: { ':pk': { S: PK } },
    };
    const { Items = [] } = await world.table.transport.send('Query', input, deadlineIn(10_000));
    const keys = Items.map((item) => ({ PK, SK: item['SK']?.S ?? '' }));
    await deleteItems(
      world.table,
      keys.filter(({ SK }) => SK.startsWith('#USAGE#')),
      deadlineIn(10_000),
    );
  };

  test('a namespace that is purged while clients and workers run leaves no record', async () => {
    const space = await world.space();
    const registry = (await (await world.space()).open()).namespaces;
    const { endpoint, region } = world.engine;
    const stop = new AbortController();
    const worker = runWorker({ table: world.table.name, endpoint, region, pollMs: 5, signal: stop.signal });
    const clients = await Promise.all([1, 2].map(async () => space.open({ limits: LIMITS })));
    let granted = 0;
    const enough = new AbortController();
    const acquireOn = async (client: RateLimiter): Promise<void> => {
      for (; !enough.signal.aborted; granted += 1) await client.acquire(ASK);
    };
    const running = Promise.all(clients.map(acquireOn));
    await until(() => granted > 20);
    await registry.delete(space.namespace);
    const { removed } = await registry.purge(space.ns);
    expect(removed).toBeGreaterThan(0);
    enough.abort();
    await running;
    // Clients notice the purge when their cached status of the namespace expires.
    await space.clock.advance(120_000);
    for (const client of clients)
      await expect(client.acquire(ASK)).rejects.toMatchObject({ code: 'namespace.missing' });
    while ((await registry.purge(space.ns)).removed > 0);
    stop.abort();
    await worker;
    await workOff(world);
    const late = await ofSpace(space.ns);
    expect(await processBatch(batchTools(world.table), stream.label, late)).toMatchObject({ failures: [] });
    const input = { TableName: world.table.name, FilterExpression: 'begins_with(PK, :ns)' };
    expect(await scanAll({ ...input, ExpressionAttributeValues: { ':ns': { S: `${space.ns}/` } } })).toEqual([]);
  });

  const scanAll = async (input: object): Promise<unknown[]> => {
    const { DynamoDBClient, ScanCommand } = await import('@aws-sdk/client-dynamodb');
    const { endpoint, region, credentials } = world.engine;
    const client = new DynamoDBClient({ endpoint, region, credentials });
    const { Items = [] } = await client.send(new ScanCommand(input as { TableName: string }));
    client.destroy();
    return Items;
  };
});
