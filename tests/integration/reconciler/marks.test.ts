import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../src/core/limit.js';
import { type Engine, fault, startEngine, startFaultProxy } from '../../../src/testing/dynamodb/index.js';
import { ENGINE } from '../../support/dynamodb/world.js';
import { MINUTE_MS, ReconcilerWorld, slots, START_MS, tokensOf } from '../../support/reconciler/world.js';

const LIMITS = [Limit.perMinute('rpm', 100), Limit.concurrent('slots', 4)];
const IDLE_MS = START_MS + 10 * MINUTE_MS;
const HOLD = { asks: slots(1), untilMs: START_MS + MINUTE_MS };
const LATER = { asks: slots(1), untilMs: IDLE_MS + MINUTE_MS, nowMs: IDLE_MS };

describe.skipIf(ENGINE.missing)(`the sweep list${ENGINE.note}`, () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(async () => engine?.stop());

  test('the sweep list loses a bucket without holders, and gets it back with the next holder', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await world.hold('user-1', HOLD);
    expect(await world.listed()).toHaveLength(1);
    expect(await world.sweep(IDLE_MS)).toMatchObject({ visited: 1, reclaimed: 1, unmarked: 1 });
    expect(await world.listed()).toEqual([]);
    expect(await world.sweep(IDLE_MS)).toMatchObject({ visited: 0 });
    await world.hold('user-1', LATER, world.openBackend());
    expect(await world.listed()).toHaveLength(1);
  });

  test('the sweep list keeps a bucket that is in use, although it has no holder now', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await world.hold('user-1', HOLD);
    const nowMs = START_MS + 3 * MINUTE_MS;
    expect(await world.sweep(nowMs)).toMatchObject({ reclaimed: 1, unmarked: 0 });
    expect(await world.listed()).toHaveLength(1);
  });

  test('a process with a stale image of a listed bucket lists it again', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    // The same process before and after the sweep, which makes its image stale.
    await world.hold('user-1', HOLD);
    await world.sweep(IDLE_MS);
    expect(await world.listed()).toEqual([]);
    await world.hold('user-1', LATER);
    expect(await world.listed()).toHaveLength(1);
  });

  test('a holder whose write is in flight while the bucket leaves the sweep list is listed', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await using proxy = await startFaultProxy(engine.endpoint);
    const slow = world.openBackend(world.through(engine, proxy.endpoint));
    await world.hold('user-1', HOLD, slow);
    const held = proxy.inject(fault.holdRequest(), { operations: ['UpdateItem'], times: 1 });
    const holding = world.hold('user-1', LATER, slow);
    await held.untilFired();
    expect(await world.sweep(IDLE_MS)).toMatchObject({ unmarked: 1 });
    expect(await world.listed()).toEqual([]);
    held.release();
    const { leaseId } = await holding;
    expect((await world.bucket('user-1')).holders.has(leaseId)).toBe(true);
    expect(await world.listed()).toHaveLength(1);
  });

  test('a bucket stays listed if a holder is added between the read and the write of a sweep', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await using proxy = await startFaultProxy(engine.endpoint);
    await world.hold('user-1', HOLD);
    await world.sweep(START_MS + 3 * MINUTE_MS);
    const held = proxy.inject(fault.holdRequest(), { operations: ['UpdateItem'], times: 1 });
    const sweeping = world.sweep(IDLE_MS, world.through(engine, proxy.endpoint));
    await held.untilFired();
    const { leaseId } = await world.hold('user-1', LATER);
    held.release();
    expect(await sweeping).toMatchObject({ unmarked: 0, busy: 0, failed: 0 });
    expect((await world.bucket('user-1')).holders.has(leaseId)).toBe(true);
    expect(await world.listed()).toHaveLength(1);
  });

  test('leaving the sweep list changes no balance, no counter and no expiry of the bucket', async () => {
    const odd = Limit.custom('odd', { capacity: 977, refillAmount: 7, refillPeriodMs: 86_399_999 });
    const world = await ReconcilerWorld.create(engine, [...LIMITS, odd]);
    const asks = [...slots(1), { name: 'odd', milli: 500_000 }, { name: 'rpm', milli: 3_000 }];
    await world.hold('user-1', { ...HOLD, asks });
    const balances = async () => {
      const level = { ...world.level('user-1'), asks: [], holder: null };
      const [answer] = await world.openBackend().peek(world.call(IDLE_MS), [level]);
      return answer!.verdicts.map(({ limit, effectiveMilli }) => [limit.name, effectiveMilli]);
    };
    const [before, itemBefore] = [await balances(), await world.item('user-1')];
    expect(await world.sweep(IDLE_MS)).toMatchObject({ unmarked: 1 });
    expect(await balances()).toEqual(before);
    const item = await world.item('user-1');
    for (const name of ['ttl', 'ac', 'cv', 'b_rpm_tc', 'b_odd_tc']) {
      expect([name, item?.[name]]).toEqual([name, itemBefore?.[name]]);
    }
    expect(item?.['un']).toEqual({ N: '1' });
  });

  test('concurrent takes, releases and sweeps leave no holder unlisted and no slot lost', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    let nowMs = START_MS;
    for (let round = 0; round < 12; round++) {
      const untilMs = nowMs + MINUTE_MS;
      const taker = round % 2 === 0 ? world.backend : world.openBackend();
      await Promise.all([
        world.hold('user-1', { asks: slots(1), untilMs, nowMs }, taker),
        world.sweep(nowMs),
        world.hold('user-1', { asks: slots(2), untilMs, nowMs }),
        world.sweep(nowMs),
      ]);
      const bucket = await world.bucket('user-1');
      expect([bucket.holders.size, tokensOf(bucket, 'slots')]).toEqual([2, 1]);
      expect(await world.listed()).toHaveLength(1);
      nowMs += 10 * MINUTE_MS;
    }
    const bucket = await world.bucket('user-1');
    expect(bucket.expired).toBe(22);
  });
});
