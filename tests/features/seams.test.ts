import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { memory } from '../../src/backends/embedded/memory.js';
import { Limit } from '../../src/core/limit.js';
import type { Lease } from '../../src/limiter/lease/lease.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { fakeClock } from '../../src/testing/fake-clock.js';
import { splitInto } from '../support/dynamodb/shard/shards.js';
import { type FeatureStore, STORES } from '../support/features/portable-stores.js';

const USER = { entityId: 'user-1', resource: 'gpt-4' };
const MINUTE_MS = 60_000;

/** Each corrects a limit of which the acquire has taken nothing. */
const CORRECTIONS: readonly (readonly [name: string, correct: (lease: Lease) => Promise<void>])[] = [
  ['settle', (lease) => lease.settle({ tpd: 30 })],
  ['adjust', (lease) => lease.adjust({ tpd: 30 })],
  ['commit', (lease) => lease.commit({ tpd: 30 })],
  ['rollback', (lease) => lease.rollback()],
];

describe.each(STORES)('features together on %s', (_name, start) => {
  let store: FeatureStore;
  beforeAll(async () => (store = await start()));
  afterAll(async () => store[Symbol.asyncDispose]());

  async function open(limits: readonly Limit[], onExpiry: 'keep' | 'refund' = 'keep') {
    const space = await store.space();
    const here = (await space.process({ limits, onExpiry })).limiter;
    const there = (await space.process({ limits, onExpiry })).limiter;
    return { space, here, there };
  }

  test.each(['shadow', 'bypass'] as const)(
    'No operation of a portable lease charges or refunds a limit that was short, by %s',
    async (kind) => {
      for (const onExpiry of ['keep', 'refund'] as const) {
        const limits = [Limit.perDay('rpd', 100), Limit.perDay('tpd', 10, { shadow: kind === 'shadow' })];
        const { space, here, there } = await open(limits, onExpiry);
        await here.entities.create({ id: 'user-1', bypass: kind === 'bypass' });
        for (const [name, correct] of CORRECTIONS) {
          for (const isLost of name === 'commit' ? [false, true] : [false]) {
            const lease = await here.acquire({ ...USER, consume: { rpd: 1, tpd: 50 }, portable: true });
            expect(lease.consumed).toEqual({ rpd: 1 });
            const resumed = await there.leases.resume(await lease.token());
            if (isLost) {
              await space.clock.advance(MINUTE_MS);
              await there.leases.release(lease.id);
            }
            await correct(resumed);
            expect([name, (await here.available(USER))['tpd']]).toEqual([name, 10]);
          }
        }
      }
    },
  );

  test('a portable lease charges a shadow that its acquire did not ask for, as any other lease does', async () => {
    const { here } = await open([Limit.perDay('rpd', 100), Limit.perDay('tpd', 1_000, { shadow: true })]);
    for (const portable of [false, true]) {
      const lease = await here.acquire({ ...USER, consume: { rpd: 1 }, portable });
      await lease.settle({ tpd: 30 });
      expect(lease.consumed).toEqual({ rpd: 1, tpd: 30 });
    }
    expect(await here.available(USER)).toEqual({ rpd: 98, tpd: 940 });
  });

  test('after a reset, a bucket says that no slots are held, however its leases end then', async () => {
    const { here } = await open([Limit.concurrent('slots', 2)]);
    const held = async () => (await here.buckets.get(USER))?.limits[0]?.consumed;
    const portable = await here.acquire({ ...USER, consume: { slots: 1 }, portable: true });
    const plain = await here.acquire({ ...USER, consume: { slots: 1 } });
    expect(await held()).toBe(2);
    await here.buckets.reset(USER);
    expect(await held()).toBe(0);
    await portable.commit();
    await plain.rollback();
    expect([await held(), await here.available(USER)]).toEqual([0, { slots: 2 }]);
  });

  test.each(['shadow', 'bypass'] as const)(
    'An ask beyond the capacity of one limit still takes the others, from several shards if need be, by %s',
    async (kind) => {
      const shadow = kind === 'shadow';
      const limits = [Limit.perDay('rpd', 100), Limit.perDay('tpd', 400, { shadow }), Limit.concurrent('slots', 8)];
      const { space, here, there } = await open(limits);
      await here.entities.create({ id: 'user-1', bypass: kind === 'bypass' });
      await here.acquire({ ...USER, consume: { rpd: 1 } });
      if (space.dynamo !== undefined) await splitInto(4, space.dynamo.world, space.dynamo.space, USER);
      for (const atomic of [false, true]) {
        const ask = { ...USER, consume: { rpd: 60, tpd: 700, slots: 3 }, atomic, portable: true };
        const lease = await here.acquire(ask);
        expect(lease.consumed).toEqual({ rpd: 60, slots: 3 });
        expect(await here.available(USER)).toEqual({ rpd: 39, tpd: 400, slots: 5 });
        await here.pause({ ...USER, forMs: MINUTE_MS, reason: 'an operator looks at it' });
        const resumed = await there.leases.resume(await lease.token());
        await resumed.settle({ rpd: 20, tpd: 11 });
        expect(await here.available(USER)).toEqual({ rpd: 79, tpd: 400, slots: 5 });
        await resumed.rollback();
        expect(await here.available(USER)).toEqual({ rpd: 99, tpd: 400, slots: 8 });
        await here.resume(USER);
      }
    },
  );

  test('a process whose config of a parent is old reads that config again, and is then granted', async () => {
    const { space, here, there } = await open([Limit.perDay('rpd', 100)]);
    await here.entities.create({ id: 'team' });
    await here.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
    await here.config.setEntity('team', 'gpt-4', { limits: [Limit.perDay('jobs', 5)] });
    const ask = { ...USER, consume: { rpd: 1, jobs: 1 } };
    await here.acquire(ask);
    await there.config.setEntity('team', 'gpt-4', { limits: [Limit.concurrent('jobs', 5)] });
    await there.acquire(ask);
    const refused = await here.tryAcquire(ask);
    expect([refused.granted, refused.statuses.map((status) => [status.entityId, status.limit.name])]).toEqual([
      false,
      [
        ['user-1', 'rpd'],
        ['team', 'jobs'],
      ],
    ]);
    for (let second = 0; second < 3; second++) {
      await space.clock.advance(1_100);
      if ((await here.tryAcquire(ask)).granted) return;
    }
    expect.unreachable('the config was not read again');
  });

  test.each([
    ['which lacks the limit', { usd: 5 }],
    ['of which it asks for 0', { rpd: 0, usd: 5 }],
    ['whose shadow is short', { tpd: 900, usd: 5 }],
  ])('an ask that a parent refuses counts nothing at a level %s', async (_, consume) => {
    const { here, there } = await open([Limit.perDay('rpd', 100), Limit.perDay('tpd', 400, { shadow: true })]);
    await here.entities.create({ id: 'team' });
    for (const id of ['user-1', 'user-2']) await here.entities.create({ id, parentId: 'team', cascade: true });
    await here.config.setEntity('team', 'gpt-4', { limits: [Limit.perDay('rpd', 500), Limit.perDay('usd', 30)] });
    await here.acquire({ ...USER, consume: { rpd: 1 } });
    const before = await here.buckets.get(USER);
    // The first process still expects that the parent has room.
    await there.acquire({ ...USER, entityId: 'user-2', consume: { usd: 30 } });
    const refused = await here.tryAcquire({ ...USER, consume });
    expect(refused.granted ? [] : refused.violations.map(({ entityId }) => entityId)).toEqual(['team']);
    expect(await here.buckets.get(USER)).toEqual(before);
  });

  test.each([false, true])(
    'a correction charges a parent none of whose limits the acquire named, portable: %s',
    async (portable) => {
      const { here, there } = await open([Limit.perDay('rpd', 100), Limit.perDay('tpd', 400)]);
      for (const id of ['org', 'team']) {
        await here.entities.create({ id, ...(id === 'team' ? { parentId: 'org', cascade: true } : {}) });
        await here.config.setEntity(id, 'gpt-4', { limits: [Limit.perDay('tpd', 1_000), Limit.perDay('usd', 30)] });
      }
      await here.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      const left = async () => {
        const of = async (entityId: string) => here.available({ ...USER, entityId });
        return [await here.available(USER), await of('team'), await of('org')];
      };
      const full = await left();
      const lease = await here.acquire({ ...USER, consume: { rpd: 1 }, portable });
      const later = portable ? await there.leases.resume(await lease.token()) : lease;
      await later.settle({ tpd: 300 });
      const parent = { tpd: 700, usd: 30 };
      expect(await left()).toEqual([{ rpd: 99, tpd: 100, usd: 30 }, parent, parent]);
      for (const one of [later, lease]) await one.settle({ tpd: 50, usd: 2 });
      const settled = { tpd: 950, usd: 28 };
      expect(await left()).toEqual([{ rpd: 99, tpd: 350, usd: 28 }, settled, settled]);
      await later.adjust({ tpd: 10, usd: 1 });
      const adjusted = { tpd: 940, usd: 27 };
      expect(await left()).toEqual([{ rpd: 99, tpd: 340, usd: 27 }, adjusted, adjusted]);
      await lease.rollback();
      expect(await left()).toEqual(full);
    },
  );

  test.each([false, true])(
    'an expiry that gives rates back reaches a parent none of whose limits the acquire named, portable: %s',
    async (portable) => {
      const { space, here } = await open([Limit.perDay('rpd', 100), Limit.perDay('tpd', 400)], 'refund');
      await here.entities.create({ id: 'team' });
      await here.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      await here.config.setEntity('team', 'gpt-4', { limits: [Limit.perDay('tpd', 1_000)] });
      const lease = await here.acquire({ ...USER, consume: { rpd: 1 }, leaseTtlMs: MINUTE_MS, portable });
      await lease.settle({ tpd: 300 });
      expect(await here.available({ ...USER, entityId: 'team' })).toEqual({ tpd: 700 });
      await space.clock.advance(MINUTE_MS + 1_000);
      await here.acquire({ ...USER, entityId: 'team', consume: { tpd: 1_000 } });
    },
  );

  test('a portable lease says that it holds no slots of a shadow that was full', async () => {
    const { here } = await open([Limit.perDay('rpd', 100), Limit.concurrent('slots', 2, { shadow: true })]);
    const full = await here.acquire({ ...USER, consume: { rpd: 1, slots: 2 }, portable: true });
    const short = await here.acquire({ ...USER, consume: { rpd: 1, slots: 1 }, portable: true });
    expect([full.consumed, short.consumed]).toEqual([{ rpd: 1, slots: 2 }, { rpd: 1 }]);
    await short.commit();
    expect(await here.available(USER)).toEqual({ rpd: 98, slots: 0 });
  });
});

describe('features together in one process', () => {
  test('a call that waits does not join the line of a limit that has become a shadow', async () => {
    const limiter = await RateLimiter.open(memory(), { clock: fakeClock(), limits: [Limit.perDay('rpd', 24)] });
    await limiter.entities.create({ id: 'user-1' });
    await limiter.acquire({ ...USER, consume: { rpd: 24 } });
    const ask = { ...USER, consume: { rpd: 1 }, wait: { timeoutMs: 120 * MINUTE_MS } };
    const refused = expect(limiter.acquire(ask)).rejects.toThrow('closed');
    await expect.poll(() => limiter.waiting().length).toBe(1);
    await limiter.entities.update('user-1', { bypass: true });
    await limiter.config.resolve('user-1', 'gpt-4');
    const granted = limiter.acquire(ask).then((lease) => lease.consumed);
    await Promise.resolve();
    await limiter.close();
    await refused;
    expect(await granted).toEqual({});
  });
});
