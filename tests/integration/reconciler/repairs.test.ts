import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../src/core/limit.js';
import type { Item } from '../../../src/backends/dynamodb/client/transport.js';
import { sweep } from '../../../src/backends/dynamodb/reconciler/sweep.js';
import { type Engine, fault, startEngine, startFaultProxy } from '../../../src/testing/dynamodb/index.js';
import { ENGINE } from '../../support/dynamodb/world.js';
import { MINUTE_MS, ReconcilerWorld, slots, START_MS, tokensOf } from '../../support/reconciler/world.js';

const LIMITS = [Limit.perMinute('rpm', 100), Limit.concurrent('slots', 10), Limit.concurrent('jobs', 3)];
const NOW_MS = START_MS + MINUTE_MS;
const EXPIRED = { asks: slots(2), untilMs: NOW_MS };
const LIVE = { asks: slots(2), untilMs: NOW_MS + MINUTE_MS };

describe.skipIf(ENGINE.missing)(`repairs of a sweep${ENGINE.note}`, () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(async () => engine?.stop());

  test.each([
    ['too few', '1000'],
    ['too many', '9999000'],
    ['a debt', '-500'],
  ])('a sweep sets the free slots to the capacity less what is held: %s', async (_, tokens) => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await world.hold('user-1', LIVE);
    await world.hold('user-1', EXPIRED);
    const before = await world.bucket('user-1');
    await world.tamper('user-1', { b_slots_tk: { N: tokens }, b_jobs_tk: { N: tokens } });
    expect(await world.sweep(NOW_MS)).toMatchObject({ visited: 1, reclaimed: 1, healed: 2, failed: 0 });
    const bucket = await world.bucket('user-1');
    expect([tokensOf(bucket, 'slots'), tokensOf(bucket, 'jobs'), tokensOf(bucket, 'rpm')]).toEqual([8, 3, 100]);
    expect([bucket.holders.size, bucket.expired, bucket.acquires, bucket.baseMs]).toEqual([1, 1, 2, before.baseMs]);
    expect(await world.sweep(NOW_MS)).toMatchObject({ healed: 0 });
  });

  test('a sweep does not heal slots from a stale read', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await using proxy = await startFaultProxy(engine.endpoint);
    await world.hold('user-1', LIVE);
    await world.tamper('user-1', { b_slots_tk: { N: '5000' } });
    const held = proxy.inject(fault.holdRequest(), { operations: ['UpdateItem'], times: 1 });
    const sweeping = world.sweep(NOW_MS, world.through(engine, proxy.endpoint));
    await held.untilFired();
    await world.hold('user-1', { ...LIVE, asks: slots(4), nowMs: NOW_MS }, world.openBackend());
    held.release();
    expect(await sweeping).toMatchObject({ healed: 1, failed: 0 });
    expect(tokensOf(await world.bucket('user-1'), 'slots')).toBe(10 - 2 - 4);
  });

  test('of two reconcilers that see the same missing slots, one adds them', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await using proxy = await startFaultProxy(engine.endpoint);
    await world.hold('user-1', LIVE);
    await world.tamper('user-1', { b_slots_tk: { N: '5000' } });
    const held = proxy.inject(fault.holdRequest(), { operations: ['UpdateItem'], times: 1 });
    const slow = world.sweep(NOW_MS, world.through(engine, proxy.endpoint));
    await held.untilFired();
    expect(await world.sweep(NOW_MS)).toMatchObject({ healed: 1 });
    held.release();
    expect(await slow).toMatchObject({ healed: 0, failed: 0, busy: 0 });
    expect(tokensOf(await world.bucket('user-1'), 'slots')).toBe(8);
  });

  test('a bucket with constant conflicts is left for the next sweep', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await using proxy = await startFaultProxy(engine.endpoint);
    await world.hold('user-1', LIVE);
    await world.tamper('user-1', { b_slots_tk: { N: '5000' } });
    proxy.inject(fault.transactionConflict(), { operations: ['UpdateItem'] });
    const report = await world.sweep(NOW_MS, world.through(engine, proxy.endpoint));
    expect(report).toMatchObject({ visited: 1, healed: 0, busy: 1, failed: 0, failures: [] });
    expect(await world.sweep(NOW_MS)).toMatchObject({ healed: 1, busy: 0 });
  });

  const DAMAGED: readonly (readonly [string, Item])[] = [
    ['an attribute of a future version', { zz_future: { S: 'x' } }],
    ['a holder that cannot be read', { h_0Q7VSa0pYi0: { S: 'soon|slots=1000' } }],
    ['a holder of a future version', { h_0Q7VSa0pYi0: { S: '1800000060000|slots=1000|?new' } }],
    ['a holder of another type', { h_0Q7VSa0pYi0: { N: '1800000060000' } }],
    ['a limit that is not whole', { b_tpm_tk: { N: '1000' } }],
    ['a balance that is no number', { b_slots_tk: { S: 'many' } }],
    ['a capacity that no limit has', { b_slots_cp: { N: '-1000' } }],
    ['a version that cannot be read', { cv: { S: 'v2' } }],
    ['a number of shards that cannot be', { shard_count: { N: '3' } }],
    ['a write without an id', { w: { S: '' } }],
  ];

  test('a sweep names damaged buckets, does not change them, and repairs the others', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    for (const [at, [, attributes]] of DAMAGED.entries()) {
      await world.hold(`bad-${at}`, EXPIRED);
      await world.tamper(`bad-${at}`, attributes);
    }
    for (const name of ['a-first', 'zz-last']) await world.hold(name, EXPIRED);
    const before = await Promise.all(DAMAGED.map(async (_, at) => world.item(`bad-${at}`)));
    const report = await world.sweep(NOW_MS);
    expect(report).toMatchObject({ reclaimed: 2, failed: DAMAGED.length, complete: true });
    expect(report.failures.map(({ namespace, bucket }) => `${namespace} ${bucket}`).toSorted()).toEqual(
      DAMAGED.map((_, at) => `default bad-${at}#gpt-4`).toSorted(),
    );
    for (const { reason: why } of report.failures) expect(why).toMatch(/^[a-zA-Z].{10,}/);
    expect(await Promise.all(DAMAGED.map(async (_, at) => world.item(`bad-${at}`)))).toEqual(before);
  });

  test('a report names at most twenty failures, and counts all of them', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    for (let at = 0; at < 25; at++) {
      await world.hold(`bad-${at}`, EXPIRED);
      await world.tamper(`bad-${at}`, { zz_future: { N: '1' } });
    }
    const { failed, failures } = await world.sweep(NOW_MS);
    expect([failed, failures.length]).toEqual([25, 20]);
  });

  test('the counter of a removed limit, and slots that were a rate before, are no damage', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await world.hold('user-1', EXPIRED);
    await world.tamper('user-1', { b_gone_tc: { N: '-5' }, b_slots_tc: { N: '700' } });
    expect(await world.sweep(NOW_MS)).toMatchObject({ reclaimed: 1, failed: 0 });
  });

  test('a sweep does not create a bucket again that was deleted but is still listed', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await using proxy = await startFaultProxy(engine.endpoint);
    await world.hold('user-1', EXPIRED);
    const held = proxy.inject(fault.holdRequest(), { operations: ['UpdateItem'], times: 1 });
    const sweeping = world.sweep(NOW_MS, world.through(engine, proxy.endpoint));
    await held.untilFired();
    await world.remove('user-1');
    held.release();
    expect(await sweeping).toMatchObject({ reclaimed: 0, failed: 0, busy: 0 });
    expect(await world.item('user-1')).toBeUndefined();
  });

  test('a sweep does not visit deleted namespaces, and visits recovered ones', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    const admin = { nowMs: START_MS, timeoutMs: 10_000, principal: null };
    await world.hold('user-1', EXPIRED);
    const { namespaces } = world.openBackend();
    await namespaces.register({ ...admin, auditId: '01' }, 'acme', 'acme-000001');
    await namespaces.delete({ ...admin, auditId: '02' }, 'default');
    expect(await world.sweep(NOW_MS)).toMatchObject({ namespaces: 1, visited: 0, reclaimed: 0 });
    expect((await world.bucket('user-1')).holders.size).toBe(1);
    await namespaces.recover({ ...admin, auditId: '03' }, world.ns);
    expect(await world.sweep(NOW_MS)).toMatchObject({ namespaces: 2, visited: 1, reclaimed: 1 });
  });

  test('an aborted sweep starts no further work, and reports that it is incomplete', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    for (let at = 0; at < 30; at++) await world.hold(`user-${at}`, EXPIRED);
    const stop = new AbortController();
    const now = (): number => {
      stop.abort();
      return NOW_MS;
    };
    const report = await sweep(world.table, { now, signal: stop.signal });
    expect(report.complete).toBe(false);
    expect(report.visited).toBeLessThan(30);
    expect(await world.sweep(NOW_MS)).toMatchObject({ complete: true, reclaimed: 30 - report.reclaimed });
  });

  test('a sweep costs a read unit per bucket, a write per repair, and one more when the bucket leaves the list', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await using proxy = await startFaultProxy(engine.endpoint, { record: true, askForCapacity: true });
    const table = world.through(engine, proxy.endpoint);
    const costOf = async (nowMs: number) => {
      proxy.requests.clear();
      await world.sweep(nowMs, table);
      return { ...proxy.requests.byOperation(), ...proxy.requests.consumed() };
    };
    const registry = await costOf(NOW_MS);
    for (let at = 0; at < 50; at++) await world.hold(`user-${at}`, EXPIRED);
    const idle = await costOf(START_MS);
    expect(idle).toMatchObject({ Query: 2, BatchGetItem: 1, writeUnits: 0 });
    // About twenty keys of the index are one unit.
    expect(idle.readUnits - registry.readUnits).toBeLessThan(50 * 1.1);
    expect(await costOf(NOW_MS)).toMatchObject({ UpdateItem: 50, writeUnits: 50 });
    expect(await costOf(NOW_MS + 10 * MINUTE_MS)).toMatchObject({ UpdateItem: 50, writeUnits: 100 });
  });
});
