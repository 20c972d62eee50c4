import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../../src/core/limit.js';
import type { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';

const CACHE_LIFE_MS = 60_000;
const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };

describe.skipIf(ENGINE.missing)(`changes of limits on existing buckets${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({ record: true });
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  /** The versions that buckets were settled to since the log was cleared, in order. Takes never name a capacity. */
  const settledVersions = (): readonly string[] =>
    world.proxy.requests.recorded.flatMap(({ operation, body, answer }) => {
      if (operation !== 'UpdateItem' || answer?.status !== 200) return [];
      const stored = answer.body['Attributes'] as { readonly cv: { readonly S: string } };
      return /_cp\b/.test(JSON.stringify(body)) ? [stored.cv.S] : [];
    });
  const capacities = async (space: Space, entityId = 'user-1') => {
    const [shard] = await space.shards(entityId, 'gpt-4');
    return Object.fromEntries((shard?.limits ?? []).map(({ limit }) => [limit.name, limit.capacity]));
  };
  const rpm = (amount: number) => ({ limits: [Limit.perMinute('rpm', amount)] });

  describe('clients with old and new caches', () => {
    test('a version is applied once, and a client with an old cache decides by the stored limits', async () => {
      const space = await world.space();
      const admin = await space.open();
      await admin.config.setResource('gpt-4', rpm(100));
      const old = await space.open();
      await old.acquire(ASK);
      await admin.config.setResource('gpt-4', rpm(3));
      const fresh = await space.open();
      world.proxy.requests.clear();
      let granted = 0;
      // Within the second in which the old client does not read the config again.
      for (let turn = 0; turn < 60; turn++) {
        for (const limiter of [fresh, old]) if ((await limiter.tryAcquire(ASK)).granted) granted += 1;
        await space.clock.advance(15);
      }
      expect(settledVersions()).toHaveLength(1);
      expect(granted).toBe(3);
      expect(await capacities(space)).toEqual({ rpm: 3 });
    });

    test('processes apply each of many versions at most once, in order, whichever process reads it first', async () => {
      const space = await world.space();
      const admin = await space.open();
      await admin.config.setSystem(rpm(100));
      const processes = await Promise.all([0, 1, 2].map(() => space.open({ configCacheMs: 2_000 })));
      for (const limiter of processes) await limiter.acquire(ASK);
      world.proxy.requests.clear();
      for (let version = 1; version <= 6; version++) {
        await admin.config.setSystem(rpm(version % 2 === 0 ? 100 : 50 + version));
        // Each process learns of the version at a different time.
        for (let turn = 0; turn < 10; turn++) {
          await processes[(turn * version) % 3]?.tryAcquire(ASK);
          await space.clock.advance(333);
        }
      }
      const versions = settledVersions().map(Number);
      expect(versions).toEqual([...new Set(versions)].toSorted((a, b) => a - b));
      expect(versions.at(-1)).toBe(7);
    });

    test('an old cache does not restore limits that were replaced and then set back', async () => {
      const space = await world.space();
      const admin = await space.open();
      await admin.config.setResource('gpt-4', rpm(10));
      const first = await space.open();
      await first.acquire(ASK);
      await admin.config.setResource('gpt-4', rpm(50));
      const between = await space.open();
      await between.config.resolve('user-1', 'gpt-4');
      await admin.config.setResource('gpt-4', rpm(10));
      const last = await space.open();
      await last.acquire(ASK);
      world.proxy.requests.clear();
      await between.acquire(ASK);
      expect(settledVersions()).toEqual([]);
      expect(await capacities(space)).toEqual({ rpm: 10 });
    });

    test('a client that sees a newer version reads it in the background within a second', async () => {
      const space = await world.space();
      const admin = await space.open();
      await admin.config.setResource('gpt-4', rpm(100));
      const old = await space.open();
      await old.acquire(ASK);
      await admin.config.setResource('gpt-4', { limits: [Limit.perMinute('rpm', 3), Limit.perMinute('tpm', 7)] });
      await (await space.open()).acquire(ASK);
      await space.clock.advance(1_000);
      await old.acquire(ASK);
      await expect.poll(() => old.config.cache.stats().refreshes).toBe(1);
      await expect.poll(async () => (await old.config.resolve('user-1', 'gpt-4')).limits.length).toBe(2);
      await old.acquire({ ...ASK, consume: { tpm: 7 } });
    });
  });

  describe('changes at each level', () => {
    const LEVELS: readonly {
      readonly level: string;
      readonly set: (admin: RateLimiter, amount: number) => Promise<void>;
      readonly ref: Parameters<RateLimiter['config']['delete']>[0];
    }[] = [
      { level: 'the system', set: (admin, amount) => admin.config.setSystem(rpm(amount)), ref: 'system' },
      {
        level: 'the resource',
        set: (admin, amount) => admin.config.setResource('gpt-4', rpm(amount)),
        ref: { resource: 'gpt-4' },
      },
      {
        level: 'the entity',
        set: (admin, amount) => admin.config.setEntityDefault('user-1', rpm(amount)),
        ref: { entityId: 'user-1' },
      },
      {
        level: 'the entity and resource',
        set: (admin, amount) => admin.config.setEntity('user-1', 'gpt-4', rpm(amount)),
        ref: { entityId: 'user-1', resource: 'gpt-4' },
      },
    ];

    test.each(LEVELS)(
      'a change at $level reaches an existing bucket within one cache lifetime, and so does its deletion',
      async ({ set, ref }) => {
        const space = await world.space();
        const admin = await space.open();
        const processes = [await space.open(rpm(100)), await space.open(rpm(100))];
        for (const limiter of processes) await limiter.acquire(ASK);
        for (const [change, capacity] of [
          [() => set(admin, 40), 40],
          [() => set(admin, 70), 70],
          [() => admin.config.delete(ref), 100],
        ] as const) {
          await change();
          await processes[0]?.acquire(ASK);
          await space.clock.advance(CACHE_LIFE_MS);
          world.proxy.requests.clear();
          for (const limiter of processes) await limiter.acquire(ASK);
          expect(await capacities(space)).toEqual({ rpm: capacity });
          expect(settledVersions()).toHaveLength(1);
        }
      },
    );

    test('each level takes precedence over those below it, on the same bucket', async () => {
      const space = await world.space();
      const admin = await space.open();
      const limiter = await space.open(rpm(100));
      await limiter.acquire(ASK);
      const seen: unknown[] = [];
      const look = async (): Promise<void> => {
        await space.clock.advance(CACHE_LIFE_MS);
        await limiter.acquire(ASK);
        seen.push((await capacities(space))['rpm']);
      };
      for (const [at, { set }] of LEVELS.entries()) {
        await set(admin, 90 - at);
        await look();
      }
      for (const { ref } of LEVELS.toReversed()) {
        await admin.config.delete(ref);
        await look();
      }
      expect(seen).toEqual([90, 89, 88, 87, 88, 89, 90, 100]);
    });

    test('limits in code of the process that opened last apply, and an older process follows them', async () => {
      const space = await world.space();
      const before = await space.open(rpm(100));
      await before.acquire(ASK);
      await space.clock.advance(1);
      const after = await space.open(rpm(30));
      await after.acquire(ASK);
      world.proxy.requests.clear();
      for (const limiter of [before, after, before]) await limiter.acquire(ASK);
      expect(await capacities(space)).toEqual({ rpm: 30 });
      expect(settledVersions()).toEqual([]);
    });
  });

  describe('the tokens of a bucket whose limits change', () => {
    const changed = async (before: readonly Limit[], take: Record<string, number>, after: readonly Limit[]) => {
      const space = await world.space();
      const admin = await space.open();
      await admin.config.setResource('gpt-4', { limits: before });
      const limiter = await space.open();
      const lease = await limiter.acquire({ ...ASK, consume: take });
      await admin.config.setResource('gpt-4', { limits: after });
      limiter.config.cache.clear();
      return { space, limiter, lease };
    };

    test('raising a limit adds no tokens, and a cut caps the tokens', async () => {
      const raised = await changed([Limit.perHour('rpm', 100)], { rpm: 90 }, [Limit.perHour('rpm', 500)]);
      await raised.limiter.acquire({ ...ASK, consume: { rpm: 10 } });
      expect(await raised.limiter.tryAcquire(ASK)).toMatchObject({ granted: false });
      const cut = await changed([Limit.perHour('rpm', 100)], { rpm: 10 }, [Limit.perHour('rpm', 20)]);
      await cut.limiter.acquire({ ...ASK, consume: { rpm: 20 } });
      expect(await cut.limiter.tryAcquire(ASK)).toMatchObject({ granted: false });
    });

    test('an added limit starts full and is enforced at once', async () => {
      const limits = [Limit.perHour('rpm', 100)];
      const { limiter } = await changed(limits, { rpm: 1 }, [...limits, Limit.perHour('tpm', 50)]);
      await limiter.acquire({ ...ASK, consume: { rpm: 1, tpm: 50 } });
      expect(await limiter.tryAcquire({ ...ASK, consume: { tpm: 1 } })).toMatchObject({ granted: false });
      expect(await limiter.available(ASK)).toEqual({ rpm: 98, tpm: 0 });
    });

    test('a removed limit has no tokens, its leases can end, and its counter continues if it is added again', async () => {
      const [both, one] = [[Limit.perHour('rpm', 100), Limit.perHour('tpm', 50)], [Limit.perHour('rpm', 100)]];
      const { space, limiter, lease } = await changed(both, { rpm: 1, tpm: 20 }, one);
      await limiter.acquire(ASK);
      expect(await capacities(space)).toEqual({ rpm: 100 });
      await expect(limiter.tryAcquire({ ...ASK, consume: { tpm: 1 } })).rejects.toMatchObject({
        code: 'input.invalid',
      });
      await lease.rollback();
      await (await space.open()).config.setResource('gpt-4', { limits: both });
      limiter.config.cache.clear();
      await limiter.acquire({ ...ASK, consume: { tpm: 50 } });
      const [shard] = await space.shards('user-1', 'gpt-4');
      expect(shard?.limits.find(({ limit }) => limit.name === 'tpm')).toMatchObject({
        tokensMilli: 0,
        consumedMilli: 70_000,
      });
    });

    test('slots move by the difference, so that held slots stay held', async () => {
      const slots = (count: number) => [Limit.concurrent('slots', count)];
      const { space, limiter, lease } = await changed(slots(5), { slots: 4 }, slots(2));
      const ask = { ...ASK, consume: { slots: 1 } };
      expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: false });
      const [shard] = await space.shards('user-1', 'gpt-4');
      expect(shard?.limits[0]?.tokensMilli).toBe(-2_000);
      await lease.release();
      await limiter.acquire({ ...ask, consume: { slots: 2 } });
      expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: false });
    });
  });

  describe('entities that change', () => {
    const createChain = async () => {
      const space = await world.space();
      const admin = await space.open();
      const limiter = await space.open({ limits: [Limit.perHour('rpm', 1_000)] });
      await limiter.acquire(ASK);
      const parentTook = async (id: string) => (await space.shards(id, 'gpt-4'))[0]?.limits[0]?.consumedMilli;
      return { space, admin, limiter, parentTook };
    };

    test('an entity that is created after its first acquire counts for its parent within one cache lifetime', async () => {
      const { space, admin, limiter, parentTook } = await createChain();
      await admin.entities.create({ id: 'proj-1' });
      await admin.entities.create({ id: 'user-1', parentId: 'proj-1', cascade: true });
      await space.clock.advance(CACHE_LIFE_MS);
      await limiter.acquire(ASK);
      expect(await parentTook('proj-1')).toBe(1_000);
    });

    test('an entity that this process creates counts for its parent at once', async () => {
      const { limiter, parentTook } = await createChain();
      await limiter.entities.create({ id: 'proj-1' });
      await limiter.entities.create({ id: 'user-1', parentId: 'proj-1', cascade: true });
      await limiter.acquire(ASK);
      expect(await parentTook('proj-1')).toBe(1_000);
    });

    test('an entity with a new parent counts for it within one cache lifetime, and no longer for the old one', async () => {
      const { space, admin, limiter, parentTook } = await createChain();
      for (const id of ['proj-1', 'proj-2']) await admin.entities.create({ id });
      await admin.entities.create({ id: 'user-1', parentId: 'proj-1', cascade: true });
      await space.clock.advance(CACHE_LIFE_MS);
      const early = await limiter.acquire(ASK);
      await admin.entities.update('user-1', { parentId: 'proj-2' });
      await space.clock.advance(CACHE_LIFE_MS);
      await limiter.acquire({ ...ASK, consume: { rpm: 5 } });
      expect([await parentTook('proj-1'), await parentTook('proj-2')]).toEqual([1_000, 5_000]);
      // The rollback gives back to the old parent.
      await early.rollback();
      expect([await parentTook('proj-1'), await parentTook('proj-2')]).toEqual([0, 5_000]);
      await admin.entities.update('user-1', { cascade: false });
      await space.clock.advance(CACHE_LIFE_MS);
      await limiter.acquire(ASK);
      expect([await parentTook('proj-1'), await parentTook('proj-2')]).toEqual([0, 5_000]);
    });
  });
});
