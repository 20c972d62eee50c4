import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MAX_TRACES } from '../../src/core/bucket/traces.js';
import { Limit } from '../../src/core/limit.js';
import type { LimiterEvent } from '../../src/limiter/events/limiter-event.js';
import type { Lease } from '../../src/limiter/lease/lease.js';
import type { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { fault } from '../../src/testing/dynamodb/index.js';
import { type FeatureSpace, type FeatureStore, STORES } from '../support/features/portable-stores.js';

const LIMITS = [Limit.perDay('rpd', 100), Limit.perDay('tpd', 100_000), Limit.concurrent('slots', 8)];
const USER = { entityId: 'user-1', resource: 'gpt-4' };
const ASK = { ...USER, consume: { rpd: 1, tpd: 500, slots: 2 }, portable: true };

/** Two processes, and a lease of a user that cascades to a team. */
async function open(space: FeatureSpace) {
  const [one, other] = [await space.process({ limits: LIMITS }), await space.process({ limits: LIMITS })];
  await one.limiter.entities.create({ id: 'team' });
  await one.limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
  const lease = await one.limiter.acquire(ASK);
  return { one, other, lease, resumed: await other.limiter.leases.resume(await lease.token()) };
}

/** What both levels have given, which must be the same. */
async function taken(limiter: RateLimiter): Promise<Record<string, number>> {
  const levels = await Promise.all(
    ['user-1', 'team'].map(async (entityId) => {
      const { limits = [] } = (await limiter.buckets.get({ ...USER, entityId })) ?? {};
      return Object.fromEntries(limits.map(({ limit, consumed }) => [limit.name, consumed]));
    }),
  );
  expect(levels[1]).toEqual(levels[0]);
  return levels[0] ?? {};
}

const CORRECTIONS: readonly (readonly [name: string, tpd: number, correct: (lease: Lease) => Promise<void>])[] = [
  ['settle', 900, (lease) => lease.settle({ tpd: 900 })],
  ['settle to nothing', 0, (lease) => lease.settle({ tpd: 0 })],
  ['adjust', 620, (lease) => lease.adjust({ tpd: 120 }, { operationId: 'once' })],
];

describe.each(STORES)('contradictory steps of two processes on %s', (name, start) => {
  let store: FeatureStore;
  beforeAll(async () => {
    store = await start();
  });
  afterAll(async () => store?.[Symbol.asyncDispose]());

  test.each(CORRECTIONS)(
    'a correction (%s) of a process that is killed between the levels reaches the parent by the commit of another process',
    async (_, tpd, correct) => {
      const { one, other, lease, resumed } = await open(await store.space());
      one.kill({ at: 1, lost: 'request' });
      await expect(correct(lease)).rejects.toMatchObject({ code: 'backend.unavailable' });
      await resumed.commit();
      expect(await taken(other.limiter)).toEqual({ rpd: 1, tpd, slots: 0 });
    },
  );

  test('a commit that is killed between the levels decides the totals, also against a second commit with other totals', async () => {
    const { one, other, lease, resumed } = await open(await store.space());
    one.kill({ at: 1, lost: 'request' });
    await expect(lease.commit({ tpd: 812 })).rejects.toMatchObject({ code: 'backend.unavailable' });
    await resumed.commit({ tpd: 640 });
    expect(await taken(other.limiter)).toEqual({ rpd: 1, tpd: 812, slots: 0 });
  });

  test('once the trace of a commit is gone, a rollback gives nothing back to a parent that the commit has not reached', async () => {
    const space = await store.space();
    const { one, other, lease, resumed } = await open(space);
    one.kill({ at: 1, lost: 'request' });
    await expect(lease.commit({ tpd: 812 })).rejects.toMatchObject({ code: 'backend.unavailable' });
    one.kill(null);
    await space.clock.advance(1);
    for (let count = 0; count <= MAX_TRACES; count++) {
      await (await one.limiter.acquire({ ...USER, consume: { slots: 1 }, portable: true })).commit();
    }
    await resumed.rollback();
    const given = await Promise.all(
      ['user-1', 'team'].map(async (entityId) => other.limiter.available({ ...USER, entityId })),
    );
    expect(given.map(({ tpd }) => tpd)).toEqual([100_000 - 812, 100_000 - 500]);
    expect(given.map(({ slots }) => slots)).toEqual([8, 8]);
  });

  test('a process whose operation is refused writes the end of the lease to the parent, if the process that ended it has not', async () => {
    const { one, other, lease, resumed } = await open(await store.space());
    one.kill({ at: 1, lost: 'request' });
    await expect(lease.commit({ tpd: 812 })).rejects.toMatchObject({ code: 'backend.unavailable' });
    await expect(resumed.rollback()).rejects.toMatchObject({ code: 'lease.closed', state: 'committed' });
    expect(await taken(other.limiter)).toEqual({ rpd: 1, tpd: 812, slots: 0 });
  });

  test('a commit that fails at the parent and is repeated emits the end of the lease once', async () => {
    const space = await store.space();
    const ends: unknown[] = [];
    const onEvent = (event: LimiterEvent): unknown =>
      event.type === 'lease-end' && ends.push([event.how, event.tokens]);
    const one = await space.process({ limits: LIMITS, onEvent });
    await one.limiter.entities.create({ id: 'team' });
    await one.limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
    const lease = await one.limiter.acquire(ASK);
    one.kill({ at: 1, lost: 'request' });
    await expect(lease.commit({ tpd: 812 })).rejects.toMatchObject({ code: 'backend.unavailable' });
    one.kill(null);
    expect(ends).toEqual([]);
    for (let repeat = 0; repeat < 2; repeat++) await lease.commit({ tpd: 812 });
    expect(ends).toEqual([['committed', { rpd: 1, tpd: 812 }]]);
    expect(await taken(one.limiter)).toEqual({ rpd: 1, tpd: 812, slots: 0 });
  });

  test('a commit leaves a limit of the parent alone that the entity does not have', async () => {
    const space = await store.space();
    const { limiter } = await space.process({ limits: LIMITS });
    await limiter.entities.create({ id: 'team' });
    await limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
    await limiter.config.setEntity('team', 'gpt-4', { limits: [Limit.perDay('tpd', 1_000), Limit.perDay('usd', 50)] });
    const lease = await limiter.acquire({ ...USER, consume: { rpd: 1, tpd: 500, usd: 3 }, portable: true });
    await lease.commit({ tpd: 700 });
    expect(await limiter.available({ ...USER, entityId: 'team' })).toEqual({ tpd: 300, usd: 47 });
    expect(await limiter.available(USER)).toMatchObject({ rpd: 99 });
  });

  test.runIf(name === 'dynamodb').each(CORRECTIONS)(
    'a correction (%s) whose write of the parent is late counts at both levels, although another process has committed meanwhile',
    async (_, tpd, correct) => {
      const space = await store.space();
      const { other, lease, resumed } = await open(space);
      const late = space.dynamo!.world.proxy.inject(fault.holdRequest(), {
        operations: ['UpdateItem'],
        when: ({ body }) => JSON.stringify(body).includes('BUCKET#team#'),
        times: 1,
      });
      const correcting = correct(lease);
      await late.untilFired(1);
      await resumed.commit();
      late.release();
      await correcting;
      expect(lease.state).toBe('committed');
      expect(await taken(other.limiter)).toEqual({ rpd: 1, tpd, slots: 0 });
    },
  );

  test('a release by id ends the lease once and is audited once, while other processes take and answers are lost', async () => {
    const space = await store.space();
    const [{ limiter: here }, { limiter: there }] = [
      await space.process({ limits: LIMITS }),
      await space.process({ limits: LIMITS }),
    ];
    const lease = await here.acquire(ASK);
    space.dynamo?.world.proxy.inject(fault.loseAnswer(), { operations: ['TransactWriteItems'], times: 2 });
    const takes = Array.from({ length: 20 }, async () => there.acquire({ ...USER, consume: { tpd: 1 } }));
    const released = [await here.leases.release(lease.id, USER), await there.leases.release(lease.id, USER)];
    await Promise.all(takes);
    space.dynamo?.world.proxy.heal();
    expect(released).toEqual([true, false]);
    expect(await here.available(USER)).toEqual({ rpd: 99, tpd: 99_480, slots: 8 });
    const { items } = await here.audit.list({ entityId: USER.entityId });
    expect(items.map(({ action }) => action)).toEqual(['lease.release']);
  });
});
