import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../src/core/limit.js';
import { type Engine, fault, startEngine, startFaultProxy } from '../../../src/testing/dynamodb/index.js';
import { ENGINE } from '../../support/dynamodb/world.js';
import { MINUTE_MS, ReconcilerWorld, slots, START_MS, tokensOf } from '../../support/reconciler/world.js';

const LIMITS = [Limit.perMinute('rpm', 100), Limit.concurrent('slots', 25)];

describe.skipIf(ENGINE.missing)(`sweeps${ENGINE.note}`, () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(async () => engine?.stop());

  test('two concurrent reconcilers reclaim 1,000 expired holders of 50 buckets once, and no others', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    const names = Array.from({ length: 50 }, (_, at) => `user-${at}`);
    const soon = { asks: slots(1), untilMs: START_MS + MINUTE_MS };
    const late = { asks: slots(1), untilMs: START_MS + 10 * MINUTE_MS };
    await Promise.all(
      names.flatMap((name) => [
        ...Array.from({ length: 20 }, async () => world.hold(name, soon)),
        ...Array.from({ length: 5 }, async () => world.hold(name, late)),
      ]),
    );
    const nowMs = START_MS + 2 * MINUTE_MS;
    const others = world.through(engine, engine.endpoint);
    const reports = await Promise.all([world.sweep(nowMs), world.sweep(nowMs, others)]);
    const sum = (field: 'reclaimed' | 'healed' | 'failed' | 'unmarked' | 'merged'): number =>
      reports.reduce((total, report) => total + report[field], 0);
    expect([sum('reclaimed'), sum('healed'), sum('failed'), sum('merged'), sum('unmarked')]).toEqual([
      1_000, 0, 0, 0, 0,
    ]);
    for (const name of names) {
      const bucket = await world.bucket(name);
      expect([bucket.holders.size, tokensOf(bucket, 'slots'), bucket.expired, bucket.acquires]).toEqual([
        5, 20, 20, 25,
      ]);
    }
    expect(await world.sweep(nowMs)).toMatchObject({
      visited: 50,
      reclaimed: 0,
      healed: 0,
      unmarked: 0,
      complete: true,
    });
  });

  test('a sweep refunds rates only if the holder has them, and counts each expiry', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    const asks = [...slots(2), { name: 'rpm', milli: 7_000 }];
    await world.hold('keeps', { asks, untilMs: START_MS + MINUTE_MS });
    await world.hold('refunds', { asks, untilMs: START_MS + MINUTE_MS, refunds: true });
    await world.sweep(START_MS + MINUTE_MS);
    const [keeps, refunds] = [await world.bucket('keeps'), await world.bucket('refunds')];
    expect([tokensOf(keeps, 'rpm'), tokensOf(keeps, 'slots'), keeps.expired]).toEqual([93, 25, 1]);
    expect([tokensOf(refunds, 'rpm'), tokensOf(refunds, 'slots'), refunds.expired]).toEqual([100, 25, 1]);
    expect([keeps, refunds].map(({ limits }) => limits.map(({ consumedMilli }) => consumedMilli))).toEqual([
      [7_000, 0],
      [0, 0],
    ]);
  });

  test('a sweep reclaims more holders than one write can name', async () => {
    const world = await ReconcilerWorld.create(engine, [Limit.concurrent('slots', 300)]);
    const hold = { asks: slots(1), untilMs: START_MS + MINUTE_MS };
    await Promise.all(Array.from({ length: 250 }, async () => world.hold('user-1', hold)));
    expect(await world.sweep(START_MS + MINUTE_MS)).toMatchObject({ visited: 1, reclaimed: 250, healed: 0 });
    const bucket = await world.bucket('user-1');
    expect([bucket.holders.size, tokensOf(bucket, 'slots'), bucket.expired]).toEqual([0, 300, 250]);
  });

  test('a sweep visits more buckets than one page lists', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    const names = Array.from({ length: 230 }, (_, at) => `user-${at}`);
    await Promise.all(names.map(async (name) => world.hold(name, { asks: slots(1), untilMs: START_MS + MINUTE_MS })));
    expect(await world.sweep(START_MS + MINUTE_MS)).toMatchObject({ visited: 230, reclaimed: 230 });
  });

  test('a sweep does not reclaim a holder that expires one millisecond later', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    const { leaseId } = await world.hold('user-1', { asks: slots(1), untilMs: START_MS + MINUTE_MS });
    expect(await world.sweep(START_MS + MINUTE_MS - 1)).toMatchObject({ visited: 1, reclaimed: 0, unmarked: 0 });
    expect((await world.bucket('user-1')).holders.has(leaseId)).toBe(true);
  });

  test('a holder that is extended between the read and the write of a sweep stays, and the others are reclaimed', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await using proxy = await startFaultProxy(engine.endpoint);
    const hold = { asks: slots(1), untilMs: START_MS + MINUTE_MS };
    const extended = await world.hold('user-1', hold);
    await world.hold('user-1', hold);
    const held = proxy.inject(fault.holdRequest(), { operations: ['UpdateItem'], times: 1 });
    const nowMs = START_MS + 2 * MINUTE_MS;
    const sweeping = world.sweep(nowMs, world.through(engine, proxy.endpoint));
    await held.untilFired();
    const expiresAtMs = START_MS + 5 * MINUTE_MS;
    const { leaseId, level } = extended;
    expect(await world.backend.extend(world.call(nowMs), { leaseId, levels: [level], expiresAtMs })).toBe(true);
    held.release();
    expect(await sweeping).toMatchObject({ reclaimed: 1, busy: 0, failed: 0 });
    const bucket = await world.bucket('user-1');
    expect([...bucket.holders].map(([id, holder]) => [id, holder.expiresAtMs])).toEqual([[leaseId, expiresAtMs]]);
    expect([tokensOf(bucket, 'slots'), bucket.expired]).toEqual([24, 1]);
  });

  test('a holder that is released between the read and the write of a sweep is given back once', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await using proxy = await startFaultProxy(engine.endpoint);
    const { leaseId, level } = await world.hold('user-1', { asks: slots(3), untilMs: START_MS + MINUTE_MS });
    const held = proxy.inject(fault.holdRequest(), { operations: ['UpdateItem'], times: 1 });
    const nowMs = START_MS + 2 * MINUTE_MS;
    const sweeping = world.sweep(nowMs, world.through(engine, proxy.endpoint));
    await held.untilFired();
    const change = { ...level, amounts: [], holder: 'release' } as const;
    await world.backend.adjust(world.call(nowMs), { leaseId, levels: [change] });
    held.release();
    expect(await sweeping).toMatchObject({ reclaimed: 0, healed: 0, failed: 0 });
    const bucket = await world.bucket('user-1');
    expect([tokensOf(bucket, 'slots'), bucket.expired]).toEqual([25, 0]);
  });

  test('lost requests and lost answers of a sweep change no count', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await using proxy = await startFaultProxy(engine.endpoint, { seed: 7 });
    const names = Array.from({ length: 40 }, (_, at) => `user-${at}`);
    const asks = [...slots(1), { name: 'rpm', milli: 2_000 }];
    const hold = { asks, untilMs: START_MS + MINUTE_MS, refunds: true };
    await Promise.all(names.flatMap((name) => [1, 2, 3].map(async () => world.hold(name, hold))));
    const lost = proxy.inject(fault.loseAnswer(), { operations: ['UpdateItem'], probability: 0.3 });
    proxy.inject(fault.loseRequest(), { operations: ['UpdateItem'], probability: 0.1 });
    const report = await world.sweep(START_MS + MINUTE_MS, world.through(engine, proxy.endpoint));
    expect(lost.fired).toBeGreaterThan(0);
    expect(report).toMatchObject({ visited: 40, reclaimed: 120, healed: 0, failed: 0, busy: 0 });
    for (const name of names) {
      const bucket = await world.bucket(name);
      expect([tokensOf(bucket, 'slots'), tokensOf(bucket, 'rpm'), bucket.expired]).toEqual([25, 100, 3]);
    }
  });

  test('a sweep retries while the store throttles, and rejects during an outage', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await using proxy = await startFaultProxy(engine.endpoint);
    await world.hold('user-1', { asks: slots(1), untilMs: START_MS + MINUTE_MS });
    proxy.inject(fault.throttle(), { operations: ['UpdateItem', 'Query'], times: 3 });
    const distant = world.through(engine, proxy.endpoint);
    expect(await world.sweep(START_MS + MINUTE_MS, distant)).toMatchObject({ reclaimed: 1, failed: 0 });
    await proxy.refuse();
    await expect(world.sweep(START_MS + MINUTE_MS, distant)).rejects.toMatchObject({ code: 'backend.unavailable' });
  });
});
