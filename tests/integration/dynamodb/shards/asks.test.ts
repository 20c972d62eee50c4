import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../../src/core/limit.js';
import { splitInto, splitShard, spreading, sumOf } from '../../../support/dynamodb/shard/shards.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../../support/dynamodb/world.js';

const BUCKET = { entityId: 'user-1', resource: 'gpt-4' };
const MINUTE_MS = 60_000;

describe.skipIf(ENGINE.missing)(`asks that are larger than one share${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({ record: true });
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  describe('large asks with an ask for 0 of another limit', () => {
    const LIMITS = [Limit.perHour('rpm', 64), Limit.perHour('tpm', 60)];

    /** Two shards, each with half of this debt. */
    const inDebt = async (tokens: number) => {
      const space = await world.space();
      const limiter = await space.open({ limits: LIMITS }, spreading());
      const lease = await limiter.acquire({ ...BUCKET, consume: { tpm: 60 } });
      await lease.adjust({ tpm: tokens });
      await splitInto(2, world, space, BUCKET);
      return { space, limiter };
    };

    test.each([true, false])(
      'an ask larger than one share is refused while every shard has a debt of another limit that it names (atomic: %s)',
      async (atomic) => {
        const { space, limiter } = await inDebt(30);
        const ask = { ...BUCKET, consume: { rpm: 40, tpm: 0 }, atomic };
        const refused = await limiter.tryAcquire(ask);
        expect(refused).toMatchObject({ granted: false, reason: 'exhausted' });
        const violations = refused.granted ? [] : refused.violations.map(({ limit }) => limit.name);
        expect(violations).toEqual(['tpm']);
        const waitMs = refused.granted ? 0 : (refused.retryAfterMs ?? 0);
        await space.clock.advance(waitMs - 1);
        expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: false });
        await space.clock.advance(1);
        expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: true });
      },
    );

    test('an ask larger than one share is granted while no shard has a debt, and a later debit reaches a shard that it took from', async () => {
      const { space, limiter } = await inDebt(0);
      const lease = await limiter.acquire({ ...BUCKET, consume: { rpm: 40, tpm: 0 } });
      expect(lease.consumed).toEqual({ rpm: 40, tpm: 0 });
      await lease.adjust({ tpm: 10 });
      expect(sumOf(await space.shards('user-1', 'gpt-4'), 'tpm', space.clock.now()).effective).toBeLessThan(0);
      await lease.rollback();
      expect(await limiter.available(BUCKET)).toMatchObject({ rpm: 64 });
    });
  });

  describe('large asks that are atomic', () => {
    const LIMITS = [Limit.perHour('rpm', 96)];

    /** A child and a parent with three shards each, which have 96 tokens together. */
    const threeShards = async () => {
      const space = await world.space();
      const limiter = await space.open({ limits: LIMITS });
      await limiter.entities.create({ id: 'project' });
      await limiter.entities.create({ id: 'user-1', parentId: 'project', cascade: true });
      await (await limiter.acquire({ ...BUCKET, consume: { rpm: 1 } })).rollback();
      await space.clock.advance(2 * MINUTE_MS);
      for (const entityId of ['user-1', 'project']) {
        for (const shard of [0, 1]) await splitShard(world, space, { ...BUCKET, entityId }, shard);
      }
      return { space, limiter };
    };

    test.each([true, false])('an ask takes 60 of 96 tokens from three shards (atomic: %s)', async (atomic) => {
      const { space, limiter } = await threeShards();
      world.proxy.requests.clear();
      expect(await limiter.tryAcquire({ ...BUCKET, consume: { rpm: 60 }, atomic })).toMatchObject({ granted: true });
      if (atomic) expect(world.proxy.requests.count('TransactWriteItems')).toBe(1);
      if (atomic) expect(world.proxy.requests.count('UpdateItem')).toBe(0);
      for (const entityId of ['user-1', 'project']) {
        const { consumed } = sumOf(await space.shards(entityId, 'gpt-4'), 'rpm', space.clock.now());
        expect(consumed).toBe(60_000);
      }
      expect(await limiter.available(BUCKET)).toEqual({ rpm: 36 });
    });

    test.each([true, false])(
      'an ask for 60 is exhausted, not impossible, when three shards have 36 left (atomic: %s)',
      async (atomic) => {
        const { limiter } = await threeShards();
        const ask = { ...BUCKET, consume: { rpm: 60 }, atomic };
        const lease = await limiter.acquire(ask);
        expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: false, reason: 'exhausted' });
        expect(await limiter.tryAcquire({ ...ask, consume: { rpm: 97 } })).toMatchObject({ reason: 'impossible' });
        await lease.rollback();
        expect(await limiter.available(BUCKET)).toEqual({ rpm: 96 });
      },
    );

    test('an atomic ask of one level is one transaction if it needs several shards, and one write otherwise', async () => {
      const space = await world.space();
      const limiter = await space.open({ limits: LIMITS });
      await limiter.acquire({ ...BUCKET, consume: { rpm: 1 } });
      await splitInto(2, world, space, BUCKET);
      await space.clock.advance(2 * MINUTE_MS);
      await limiter.acquire({ ...BUCKET, consume: { rpm: 1 }, atomic: true });
      world.proxy.requests.clear();
      await limiter.acquire({ ...BUCKET, consume: { rpm: 1 }, atomic: true });
      expect(world.proxy.requests.count('UpdateItem')).toBe(1);
      expect(world.proxy.requests.count('TransactWriteItems')).toBe(0);
      world.proxy.requests.clear();
      await limiter.acquire({ ...BUCKET, consume: { rpm: 60 }, atomic: true });
      expect(world.proxy.requests.count('TransactWriteItems')).toBe(1);
      expect(sumOf(await space.shards('user-1', 'gpt-4'), 'rpm', space.clock.now()).consumed).toBe(63_000);
    });
  });
});
