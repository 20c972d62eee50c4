import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../../src/core/limit.js';
import type { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { fault } from '../../../../src/testing/dynamodb/index.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';

const RESOURCE = 'gpt-4';
const PROCESSES = 4;
const WIDE = [Limit.perMinute('rpm', 60_000), Limit.concurrent('slots', 1_000)];
const ONE_PER_SECOND = Limit.custom('rpm', { capacity: 1, refillAmount: 1, refillPeriodMs: 1_000 });

describe.skipIf(ENGINE.missing)(`a cascade of 3 levels under a saturated parent${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({ record: true });
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  /** `user-N` under `team-N` under `org` with the given limits, and a process for each user. */
  const createChain = async (space: Space, ofOrg: readonly Limit[]): Promise<readonly RateLimiter[]> => {
    const admin = await space.open();
    await admin.entities.create({ id: 'org' });
    await admin.config.setEntity('org', RESOURCE, { limits: ofOrg });
    const processes: RateLimiter[] = [];
    for (let at = 0; at < PROCESSES; at++) {
      await admin.entities.create({ id: `team-${at}`, parentId: 'org', cascade: true });
      await admin.entities.create({ id: `user-${at}`, parentId: `team-${at}`, cascade: true });
      processes.push(await space.open({ limits: WIDE }));
    }
    return processes;
  };
  const writes = (): number => world.proxy.requests.count('UpdateItem') + world.proxy.requests.count('PutItem');
  const takenFrom = async (space: Space, entityId: string): Promise<number> => {
    const [shard] = await space.shards(entityId, RESOURCE);
    return Number(shard?.limits.find(({ limit }) => limit.name === 'rpm')?.consumedMilli ?? 0) / 1_000;
  };

  test('a cascade under a saturated parent needs at most 6 writes and 3 reads per grant when 4 processes compete', async () => {
    const space = await world.space();
    const processes = await createChain(space, [ONE_PER_SECOND]);
    const ask = (at: number) => ({ entityId: `user-${at}`, resource: RESOURCE, consume: { rpm: 1 } });
    for (const [at, limiter] of processes.entries()) await limiter.tryAcquire(ask(at));
    world.proxy.requests.clear();
    const granted = processes.map(() => 0);
    for (let round = 0; round < 80; round++) {
      await space.clock.advance(250);
      for (let turn = 0; turn < PROCESSES; turn++) {
        const at = (round + turn) % PROCESSES;
        const decision = await processes[at]?.tryAcquire(ask(at));
        if (decision?.granted === true) granted[at] = (granted[at] ?? 0) + 1;
      }
    }
    const grants = granted.reduce((sum, count) => sum + count, 0);
    expect(grants).toBe(20);
    expect(writes() / grants).toBeLessThanOrEqual(6);
    // A denial also reports the levels that were not asked. They are read, and their images serve for a second.
    expect(world.proxy.requests.count('BatchGetItem') / grants).toBeLessThanOrEqual(3);
    for (const at of processes.keys()) {
      // One of the first asks, which are not in the count, was granted.
      const first = at === 0 ? 1 : 0;
      expect(await takenFrom(space, `user-${at}`)).toBe((granted[at] ?? 0) + first);
      expect(await takenFrom(space, `team-${at}`)).toBe((granted[at] ?? 0) + first);
    }
    expect(await takenFrom(space, 'org')).toBe(grants + 1);
  });

  test('a denial needs one refused write when the slots of the parent are taken', async () => {
    const space = await world.space();
    const processes = await createChain(space, [Limit.concurrent('slots', 1)]);
    const [first, second] = processes as [RateLimiter, RateLimiter];
    const ask = (at: number) => ({ entityId: `user-${at}`, resource: RESOURCE, consume: { slots: 1 } });
    const held = await first.acquire(ask(0));
    expect(await second.tryAcquire(ask(1))).toMatchObject({ granted: false });
    world.proxy.requests.clear();
    for (let round = 0; round < 10; round++) {
      await space.clock.advance(100);
      const denied = await second.tryAcquire(ask(1));
      expect(denied).toMatchObject({ granted: false, reason: 'exhausted' });
      const levels = denied.statuses.map(({ entityId, exceeded }) => [entityId, exceeded]);
      expect(levels).toEqual([
        ['user-1', false],
        ['team-1', false],
        ['org', true],
      ]);
    }
    expect(writes()).toBe(10);
    // The two levels that were not asked are read when their images are a second old.
    expect(world.proxy.requests.count('BatchGetItem')).toBeLessThanOrEqual(2);
    await held.release();
    const lease = await second.acquire(ask(1));
    for (const id of ['user-1', 'team-1', 'org']) {
      const [shard] = await space.shards(id, RESOURCE);
      expect([...(shard?.holders.keys() ?? [])]).toEqual([lease.id]);
    }
  });

  test('a cascade is written in one round trip again once the parent can grant the last amount again', async () => {
    const space = await world.space();
    const [limiter] = (await createChain(space, [Limit.perSecond('rpm', 10)])) as [RateLimiter];
    const ask = { entityId: 'user-0', resource: RESOURCE, consume: { rpm: 1 } };
    await limiter.acquire({ ...ask, consume: { rpm: 10 } });
    expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: false });
    await space.clock.advance(1_000);
    await limiter.acquire(ask);
    const held = world.proxy.inject(fault.holdRequest());
    const granted = limiter.acquire(ask);
    await held.untilFired(3);
    held.release();
    await granted;
  });

  test('when the child refuses, the parent gets its tokens back at once, and the next asks begin with the child', async () => {
    const space = await world.space();
    const [limiter, other] = (await createChain(space, [ONE_PER_SECOND])) as [RateLimiter, RateLimiter];
    await limiter.config.setEntity('user-0', RESOURCE, { limits: [Limit.perHour('rpm', 2)] });
    const ask = { entityId: 'user-0', resource: RESOURCE, consume: { rpm: 1 } };
    await limiter.acquire(ask);
    expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: false });
    await space.clock.advance(1_000);
    // The parent was the last level to refuse. Meanwhile the other process takes the last token of the child.
    await other.acquire(ask);
    for (const writesOfDenial of [5, 1, 1]) {
      await space.clock.advance(2_000);
      world.proxy.requests.clear();
      const denied = await limiter.tryAcquire(ask);
      expect(denied.statuses.map(({ entityId, exceeded }) => [entityId, exceeded])).toEqual([
        ['user-0', true],
        ['team-0', false],
        ['org', false],
      ]);
      expect(writes()).toBe(writesOfDenial);
      expect(await takenFrom(space, 'org')).toBe(2);
    }
  });
});
