import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { credit, effectiveTokens } from '../../../src/core/bucket/bucket.js';
import { Limit } from '../../../src/core/limit.js';
import type { ShardImage } from '../../../src/backends/dynamodb/table/items.js';
import { type Engine, fault, startEngine, startFaultProxy } from '../../../src/testing/dynamodb/index.js';
import { ENGINE } from '../../support/dynamodb/world.js';
import { HOUR_MS, MINUTE_MS, ReconcilerWorld, slots, START_MS, tokensOf } from '../../support/reconciler/world.js';

const SLOTS = 20;
/** A slow refill, so that an hour shows in millitokens. */
const LIMITS = [Limit.perDay('rpd', 4_000), Limit.concurrent('slots', SLOTS)];
const USED_MS = START_MS + MINUTE_MS;
const EXPIRED_MS = START_MS + 2 * MINUTE_MS;
const COLD_MS = EXPIRED_MS + HOUR_MS;

function freeSlots(shards: readonly ShardImage[]): number {
  return shards.reduce((sum, image) => sum + tokensOf(image, 'slots'), 0);
}

/** The tokens of the whole bucket at an instant, and its counters. */
function worthOf(shards: readonly ShardImage[], nowMs: number) {
  const accounts = shards.flatMap(({ limits, baseMs }) =>
    limits.filter(({ limit }) => limit.kind === 'rate').map((account) => ({ ...account, baseMs })),
  );
  return {
    worth: accounts.reduce(
      (sum, { rate, tokensMilli, baseMs }) =>
        sum + Number(effectiveTokens(rate, tokensMilli, credit(rate, baseMs, nowMs))),
      0,
    ),
    consumed: accounts.reduce((sum, { consumedMilli }) => sum + Number(consumedMilli), 0),
    acquires: shards.reduce((sum, { acquires }) => sum + acquires, 0),
    expired: shards.reduce((sum, { expired }) => sum + expired, 0),
    slots: freeSlots(shards),
  };
}

describe.skipIf(ENGINE.missing)(`sweeps over buckets of several shards${ENGINE.note}`, () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(async () => engine?.stop());

  /** A bucket after splits of these shards, in order, and some takes. */
  const splitBucket = async (splits: readonly number[], until = EXPIRED_MS): Promise<ReconcilerWorld> => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await world.hold('user-1', { asks: slots(1), untilMs: until });
    for (const shard of splits) await world.split('user-1', shard);
    const asks = [...slots(1), { name: 'rpd', milli: 30_000 }];
    for (let use = 0; use < 3; use++) {
      await world.hold('user-1', { asks, untilMs: until, nowMs: USED_MS, refunds: use === 0 }, world.openBackend());
    }
    return world;
  };

  test('reading a bucket finds each shard of an uneven tree once', async () => {
    const world = await splitBucket([0, 0, 2, 0, 2, 4, 10]);
    const shards = await world.shards('user-1');
    expect(shards.map(({ key }) => key.shard).toSorted((a, b) => a - b)).toEqual([0, 1, 2, 4, 6, 10, 12, 26]);
  });

  test.each([
    ['a pair', [0]],
    ['four shards', [0, 0, 1]],
    ['a half-finished split', [0, 0]],
    ['an uneven tree', [0, 0, 2, 0, 2, 4, 10]],
  ])('a sweep merges cold shards into one, and the sums stay the same: %s', async (_, splits) => {
    const world = await splitBucket(splits);
    expect(await world.sweep(EXPIRED_MS)).toMatchObject({ reclaimed: 4, merged: 0 });
    const shards = await world.shards('user-1');
    expect(worthOf(shards, COLD_MS)).toMatchObject({ consumed: 60_000, acquires: 4, expired: 4, slots: SLOTS });
    const report = await world.sweep(COLD_MS);
    expect(report).toMatchObject({
      visited: 1,
      reclaimed: 0,
      merged: splits.length,
      healed: 0,
      unmarked: 1,
      failed: 0,
    });
    const bucket = await world.bucket('user-1');
    expect(bucket.shardCount).toBe(1);
    const before = worthOf(shards, bucket.baseMs);
    const after = worthOf([bucket], bucket.baseMs);
    expect(after).toEqual({ ...before, worth: after.worth });
    // Each shard rounds its refill down.
    expect(Math.abs(after.worth - before.worth)).toBeLessThan(shards.length);
    expect(await world.listed()).toEqual([]);
  });

  test('a sweep does not merge shards that were written within the hour', async () => {
    const world = await splitBucket([0, 0, 1]);
    expect(await world.sweep(USED_MS + 10 * MINUTE_MS)).toMatchObject({ reclaimed: 4, merged: 0, unmarked: 0 });
    const shards = await world.shards('user-1');
    expect([shards.length, freeSlots(shards)]).toEqual([4, SLOTS]);
    // The writes of the reconciler itself were ten minutes later.
    expect((await world.sweep(START_MS + HOUR_MS + 11 * MINUTE_MS)).merged).toBe(3);
  });

  test('a shard with a holder is not merged until the holder releases', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await world.hold('user-1', { asks: slots(1), untilMs: EXPIRED_MS });
    await world.split('user-1', 0);
    const elsewhere = world.openBackend();
    await world.hold('user-1', { asks: slots(10), untilMs: EXPIRED_MS }, elsewhere);
    const last = await world.hold('user-1', { asks: slots(1), untilMs: START_MS + 3 * HOUR_MS }, elsewhere);
    expect(last.level.place).toMatchObject([{ shard: 1 }]);
    expect(await world.sweep(COLD_MS)).toMatchObject({ reclaimed: 2, merged: 0, unmarked: 0 });
    expect(await world.shards('user-1')).toHaveLength(2);
    expect(await world.sweep(START_MS + 3 * HOUR_MS)).toMatchObject({ reclaimed: 1, merged: 1 });
    expect(tokensOf(await world.bucket('user-1'), 'slots')).toBe(SLOTS);
  });

  test.each([
    ['stays', 0],
    ['leaves', 1],
  ])('shards of which the one that %s has newer rules merge by the newer rules', async (_, shard) => {
    const world = await splitBucket([0]);
    const newer = [Limit.perDay('rpd', 8_000), Limit.concurrent('slots', 30), Limit.perMinute('tpm', 50)];
    await world.settle('user-1', shard, newer, USED_MS);
    const versions = (await world.shards('user-1')).map(({ version }) => version.sequence);
    expect(versions).toEqual(shard === 0 ? [2, 1] : [1, 2]);
    expect(await world.sweep(COLD_MS)).toMatchObject({ reclaimed: 4, merged: 1, failed: 0, healed: 1, unmarked: 1 });
    const bucket = await world.bucket('user-1');
    expect(bucket.limits.map(({ limit }) => String(limit)).toSorted()).toEqual(newer.map(String).toSorted());
    expect([bucket.version.sequence, tokensOf(bucket, 'slots')]).toEqual([2, 30]);
  });

  test('lost answers do not merge a pair of shards twice', async () => {
    const world = await splitBucket([0, 0, 1, 0, 1, 2, 3]);
    await using proxy = await startFaultProxy(engine.endpoint, { seed: 3 });
    const before = worthOf(await world.shards('user-1'), COLD_MS);
    proxy.inject(fault.loseAnswer(), { operations: ['TransactWriteItems'], times: 2 });
    proxy.inject(fault.transactionConflict(), { operations: ['TransactWriteItems'], times: 2 });
    const report = await world.sweep(COLD_MS, world.through(engine, proxy.endpoint));
    expect(report).toMatchObject({ merged: 7, failed: 0, busy: 0 });
    const after = worthOf([await world.bucket('user-1')], COLD_MS);
    expect(after).toMatchObject({ consumed: 60_000, acquires: before.acquires, slots: SLOTS });
  });

  test('a take between the read and the merge of a sweep is not lost', async () => {
    const world = await splitBucket([0]);
    await using proxy = await startFaultProxy(engine.endpoint);
    const held = proxy.inject(fault.holdRequest(), { operations: ['TransactWriteItems'], times: 1 });
    const sweeping = world.sweep(COLD_MS, world.through(engine, proxy.endpoint));
    await held.untilFired();
    const asks = slots(2);
    await world.hold('user-1', { asks, untilMs: COLD_MS + MINUTE_MS, nowMs: COLD_MS }, world.openBackend());
    held.release();
    await sweeping;
    expect(freeSlots(await world.shards('user-1'))).toBe(SLOTS - 2);
  });

  test.each([
    ['missing slots', '2000'],
    ['extra slots', '15000'],
  ])('a sweep heals %s of several shards by their sum', async (_, tokens) => {
    const world = await splitBucket([0, 0], START_MS + 3 * HOUR_MS);
    await world.tamper('user-1', { b_slots_tk: { N: tokens } }, 1);
    expect(freeSlots(await world.shards('user-1'))).not.toBe(SLOTS - 4);
    expect(await world.sweep(USED_MS)).toMatchObject({ healed: 1, reclaimed: 0, failed: 0 });
    const shards = await world.shards('user-1');
    expect([shards.length, freeSlots(shards)]).toEqual([3, SLOTS - 4]);
    expect(await world.sweep(USED_MS)).toMatchObject({ healed: 0 });
  });

  test('of two reconcilers that see the same missing slots of several shards, one adds them', async () => {
    const world = await splitBucket([0], START_MS + 3 * HOUR_MS);
    await using proxy = await startFaultProxy(engine.endpoint);
    await world.tamper('user-1', { b_slots_tk: { N: '1000' } }, 1);
    const held = proxy.inject(fault.holdRequest(), { operations: ['TransactWriteItems'], times: 1 });
    const slow = world.sweep(USED_MS, world.through(engine, proxy.endpoint));
    await held.untilFired();
    expect(await world.sweep(USED_MS)).toMatchObject({ healed: 1 });
    held.release();
    expect(await slow).toMatchObject({ healed: 0, failed: 0, busy: 0 });
    expect(freeSlots(await world.shards('user-1'))).toBe(SLOTS - 4);
  });

  test('a bucket with a missing shard is named, and its slots are not changed', async () => {
    const world = await splitBucket([0, 0, 1], START_MS + 3 * HOUR_MS);
    await world.remove('user-1', 3);
    const before = freeSlots(await world.shards('user-1'));
    const report = await world.sweep(USED_MS);
    expect(report).toMatchObject({ healed: 0, merged: 0, failed: 1 });
    expect(report.failures).toMatchObject([{ bucket: 'user-1#gpt-4', reason: 'some of its shards are missing' }]);
    expect(freeSlots(await world.shards('user-1'))).toBe(before);
  });

  test('a sweep does not change the sum of slots if a shard was written since it was read', async () => {
    const world = await splitBucket([0], START_MS + 3 * HOUR_MS);
    await using proxy = await startFaultProxy(engine.endpoint);
    await world.tamper('user-1', { b_slots_tk: { N: '0' } }, 0);
    const held = proxy.inject(fault.holdRequest(), { operations: ['TransactWriteItems'], times: 1 });
    const sweeping = world.sweep(USED_MS, world.through(engine, proxy.endpoint));
    await held.untilFired();
    const holding = { asks: slots(1), untilMs: COLD_MS, nowMs: USED_MS };
    const { level, leaseId } = await world.hold('user-1', holding, world.openBackend());
    expect(level.place).toMatchObject([{ shard: 1 }]);
    held.release();
    expect(await sweeping).toMatchObject({ healed: 1, failed: 0 });
    const shards = await world.shards('user-1');
    expect(shards.some(({ holders }) => holders.has(leaseId))).toBe(true);
    expect(freeSlots(shards)).toBe(SLOTS - 5);
  });
});
