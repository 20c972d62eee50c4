import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sweep } from '../../src/backends/dynamodb/reconciler/sweep.js';
import { Limit } from '../../src/core/limit.js';
import type { Lease } from '../../src/limiter/lease/lease.js';
import type { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { fault } from '../../src/testing/dynamodb/index.js';
import { shapeOf, splitInto, spreading } from '../support/dynamodb/shards.js';
import { PortableModel } from '../support/features/portable-model.js';
import { type FeatureSpace, type FeatureStore, SECRET, STORES } from '../support/features/portable-stores.js';

const LIMITS = [Limit.perDay('rpd', 100), Limit.perDay('tpd', 100_000), Limit.concurrent('slots', 8)];
const USER = { entityId: 'user-1', resource: 'gpt-4' };
const TAKEN = { rpd: 1, tpd: 500, slots: 2 };
const ASK = { ...USER, consume: TAKEN, portable: true };
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** A lease, the process that acquired it, another process, and what the lease should have taken. */
interface Scene {
  readonly space: FeatureSpace;
  readonly here: RateLimiter;
  readonly there: RateLimiter;
  readonly lease: Lease;
  readonly token: string;
  readonly model: PortableModel;
}

/** One write path: what happens while the lease is open, and whether the store has that path. */
interface Path {
  readonly name: string;
  readonly on?: 'memory' | 'dynamodb';
  readonly run: (scene: Scene) => Promise<void>;
}

async function consumed(limiter: RateLimiter): Promise<Record<string, number>> {
  const { limits = [] } = (await limiter.buckets.get(USER)) ?? {};
  return Object.fromEntries(limits.map(({ limit, consumed: count }) => [limit.name, count]));
}

const dynamoOf = ({ space }: Scene) => {
  if (space.dynamo === undefined) throw new Error('this path exists only on DynamoDB');
  return space.dynamo;
};

const PATHS: readonly Path[] = [
  {
    name: 'a take of another lease from the same bucket',
    run: async ({ there }) => {
      const other = await there.acquire({ ...USER, consume: { tpd: 70, slots: 1 } });
      await other.rollback();
    },
  },
  {
    name: 'a take from a bucket that has become full',
    run: async ({ space, there, lease }) => {
      await lease.extend(5 * DAY_MS);
      await space.clock.advance(3 * DAY_MS);
      await (await there.acquire({ ...USER, consume: { tpd: 70 } })).rollback();
    },
  },
  {
    name: 'a settlement of the bucket to new limits',
    run: async ({ there }) => {
      await there.config.setSystem({ limits: [...LIMITS, Limit.perDay('usd', 9)] });
      await (await there.acquire({ ...USER, consume: { rpd: 1, usd: 1 } })).rollback();
    },
  },
  {
    name: 'a refund by a settle of the other process',
    run: async ({ there, token, model }) => {
      await (await there.leases.resume(token)).settle({ tpd: 20 });
      model.apply({ kind: 'settle', tpd: 20 });
    },
  },
  {
    name: 'an extension by the other process',
    run: async ({ there, token, space }) => {
      await (await there.leases.resume(token)).extend(HOUR_MS);
      await space.clock.advance(HOUR_MS - 1);
    },
  },
  {
    name: 'a reclaim of another lease that has expired',
    run: async ({ space, here, there, lease }) => {
      await here.acquire({ ...USER, consume: { slots: 6 }, leaseTtlMs: 5_000 });
      await lease.extend(HOUR_MS);
      await space.clock.advance(6_000);
      await (await there.acquire({ ...USER, consume: { slots: 6 } })).rollback();
    },
  },
  {
    name: 'a split of the shard that has the holder',
    on: 'dynamodb',
    run: async (scene) => {
      const { world, space } = dynamoOf(scene);
      await splitInto(4, world, space, USER);
    },
  },
  {
    name: 'a merge of the other shards',
    on: 'dynamodb',
    run: async (scene) => {
      const { world, space } = dynamoOf(scene);
      await splitInto(2, world, space, USER);
      await scene.lease.extend(3 * HOUR_MS);
      await scene.space.clock.advance(2 * HOUR_MS);
      await sweep(world.table, { now: () => space.clock.now() });
      expect(shapeOf(await space.shards(USER.entityId, USER.resource))).toBe('0/1');
    },
  },
  {
    name: 'a rebase of a balance that has become large',
    on: 'dynamodb',
    run: async (scene) => {
      const { space, there } = scene;
      const baseMs = async (): Promise<number> =>
        (await dynamoOf(scene).space.shards(USER.entityId, USER.resource))[0]?.baseMs ?? 0;
      const fast = Limit.custom('fast', { capacity: 1e12, refillAmount: 1e12, refillPeriodMs: 1_000 });
      await there.config.setSystem({ limits: [...LIMITS, fast] });
      const bases: number[] = [];
      for (let count = 0; count < 3; count++) {
        await space.clock.advance(10_000);
        await (await there.acquire({ ...USER, consume: { fast: 1e12 } })).rollback();
        bases.push(await baseMs());
      }
      expect(new Set(bases).size).toBeGreaterThan(1);
    },
  },
  {
    name: 'an eviction of idle buckets from memory',
    on: 'memory',
    run: async ({ there }) => {
      const limits = [Limit.perSecond('idle', 1_000)];
      for (let entity = 0; entity < 20_050; entity++) {
        await there.acquire({ entityId: `idle-${entity}`, resource: 'r', consume: { idle: 0 }, limits });
      }
    },
  },
];

describe.each(STORES)('portable leases and every write path on %s', (name, start) => {
  let store: FeatureStore;
  beforeAll(async () => {
    store = await start();
  });
  afterAll(async () => store?.[Symbol.asyncDispose]());

  const open = async (options = {}): Promise<Scene> => {
    const space = await store.space();
    const [{ limiter: here }, { limiter: there }] = [
      await space.process({ limits: LIMITS, ...options }),
      await space.process({ limits: LIMITS, ...options }),
    ];
    const lease = await here.acquire(ASK);
    return { space, here, there, lease, token: await lease.token(), model: new PortableModel(TAKEN) };
  };
  const paths = PATHS.filter(({ on }) => on === undefined || on === name).map((path) => [path.name, path] as const);

  test.each(paths)('%s leaves the lease and its end exact', async (_, { run }) => {
    for (const end of ['commit', 'rollback'] as const) {
      const scene = await open();
      await run(scene);
      expect(await consumed(scene.there)).toMatchObject(scene.model.taken);
      for (const limiter of [scene.there, scene.here]) await (await limiter.leases.resume(scene.token))[end]();
      scene.model.apply(end === 'commit' ? { kind: end, tpd: null } : { kind: end });
      expect(await consumed(scene.there)).toMatchObject(scene.model.taken);
    }
  });

  test.each(paths)('%s keeps the trace of an ended lease', async (_, { run }) => {
    const scene = await open();
    const { there, token, model } = scene;
    // Two extensions and a settle of these paths would be refused after the end.
    const quiet = { ...scene, lease: { extend: async () => {} } as unknown as Lease };
    await scene.lease.extend(6 * DAY_MS);
    await scene.lease.commit({ tpd: 900 });
    model.apply({ kind: 'commit', tpd: 900 });
    await run(quiet).catch((error: unknown) => expect(error).toMatchObject({ code: 'lease.closed' }));
    await (await there.leases.resume(token)).commit({ tpd: 900 });
    await expect((await there.leases.resume(token)).rollback()).rejects.toMatchObject({ code: 'lease.closed' });
    expect(await consumed(there)).toMatchObject(model.taken);
  });

  test('a reset gives the slots back, and a later end of the lease gives nothing back twice', async () => {
    for (const end of ['commit', 'rollback'] as const) {
      const { here, there, token } = await open();
      await here.buckets.reset(USER);
      await (await there.leases.resume(token))[end]();
      expect(await here.available(USER)).toEqual({ rpd: 100, tpd: 100_000, slots: 8 });
    }
  });

  test.each(['keep', 'refund'] as const)('the expiry and reclaim of a lease with %s is exact', async (onExpiry) => {
    const { space, here, there, token } = await open({ onExpiry });
    await space.clock.advance(61_000);
    await (await here.acquire({ ...USER, consume: { slots: 8 } })).rollback();
    const kept = onExpiry === 'keep';
    expect(await consumed(here)).toMatchObject({ ...(kept ? TAKEN : { rpd: 0, tpd: 0 }), slots: 0 });
    const late = await there.leases.resume(token);
    expect(late.state).toBe('expired');
    await late.commit({ tpd: 800 });
    expect(await consumed(here)).toMatchObject({ rpd: 1, tpd: 800, slots: 0 });
  });

  test.runIf(name === 'dynamodb')('a lease over several shards is settled and ended exactly', async () => {
    const space = await store.space();
    const { world, space: dynamo } = space.dynamo!;
    const options = { limits: LIMITS, leaseSecrets: [SECRET] as const };
    const [here, there] = [await dynamo.open(options, spreading(3)), await dynamo.open(options, spreading(5))];
    await (await here.acquire({ ...USER, consume: { tpd: 1 } })).rollback();
    await splitInto(4, world, dynamo, USER);
    for (const end of ['commit', 'rollback'] as const) {
      const before = (await consumed(there))['tpd'] ?? 0;
      // More than one of four shares.
      const lease = await here.acquire({ ...USER, consume: { tpd: 60_000, slots: 5 }, portable: true });
      const resumed = await there.leases.resume(await lease.token());
      expect(resumed.consumed).toEqual({ tpd: 60_000, slots: 5 });
      await resumed.settle({ tpd: 33_333 });
      expect(await consumed(there)).toMatchObject({ tpd: before + 33_333, slots: 5 });
      await resumed.adjust({ tpd: 11 }, { operationId: 'once' });
      await lease.adjust({ tpd: 11 }, { operationId: 'once' });
      expect((await consumed(there))['tpd']).toBe(before + 33_344);
      for (const one of [resumed, lease, resumed]) await one[end]();
      expect(await consumed(there)).toMatchObject({ tpd: end === 'commit' ? before + 33_344 : before, slots: 0 });
      expect((await here.leases.list()).items).toEqual([]);
    }
  });

  test.runIf(name === 'dynamodb')(
    'a lease over several shards is listed as one lease, and a release by its id ends it on all of them',
    async () => {
      const space = await store.space();
      const { world, space: dynamo } = space.dynamo!;
      const limiter = await dynamo.open({ limits: LIMITS }, spreading(7));
      await (await limiter.acquire({ ...USER, consume: { tpd: 1 } })).rollback();
      await splitInto(4, world, dynamo, USER);
      const { id } = await limiter.acquire({ ...USER, consume: { slots: 7 }, leaseTtlMs: HOUR_MS });
      const other = await limiter.acquire({ ...USER, entityId: 'user-2', consume: { slots: 1 } });
      for (const query of [USER, { entityId: USER.entityId }, { limit: 1 }]) {
        const found: unknown[] = [];
        for await (const lease of limiter.leases.list(query)) found.push([lease.id, lease.amounts]);
        expect(found.slice(0, 1)).toEqual([[id, { slots: 7 }]]);
        expect(found).toHaveLength('limit' in query ? 2 : 1);
      }
      expect([await limiter.leases.release(id), await limiter.leases.release(id)]).toEqual([true, false]);
      expect(await limiter.available(USER)).toMatchObject({ slots: 8 });
      expect((await limiter.leases.list()).items.map((lease) => lease.id)).toEqual([other.id]);
    },
  );

  test.runIf(name === 'dynamodb')(
    'a commit whose first write is late reaches no level once another process has rolled the lease back',
    async () => {
      const space = await store.space();
      const [{ limiter: here }, { limiter: there }] = [
        await space.process({ limits: LIMITS }),
        await space.process({ limits: LIMITS }),
      ];
      await here.entities.create({ id: 'team' });
      await here.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
      const lease = await here.acquire(ASK);
      const resumed = await there.leases.resume(await lease.token());
      const late = space.dynamo!.world.proxy.inject(fault.holdRequest(), {
        operations: ['UpdateItem'],
        when: ({ body }) => JSON.stringify(body).includes('BUCKET#user-1#'),
        times: 1,
      });
      const commit = lease.commit({ tpd: 900 });
      await late.untilFired(1);
      await resumed.rollback();
      late.release();
      await expect(commit).rejects.toMatchObject({ code: 'lease.closed', state: 'rolled-back' });
      for (const entityId of ['user-1', 'team']) {
        const bucket = await here.buckets.get({ ...USER, entityId });
        expect(bucket?.limits.map(({ consumed: count }) => count)).toEqual([0, 0, 0]);
      }
    },
  );

  test.runIf(name === 'dynamodb')('the ttl of a bucket is not before the expiry of an ended lease', async () => {
    const { space, lease } = await open();
    await lease.extend(6 * DAY_MS);
    await lease.commit();
    const [image] = await space.dynamo!.space.shards(USER.entityId, USER.resource);
    expect(image?.ttlSec ?? Infinity).toBeGreaterThanOrEqual((space.clock.now() + 6 * DAY_MS) / 1_000);
  });

  test.runIf(name === 'dynamodb')('a shard with the trace of an ended lease is merged after its expiry', async () => {
    const { space, lease } = await open();
    const { world, space: dynamo } = space.dynamo!;
    await lease.commit();
    await splitInto(2, world, dynamo, USER);
    const swept = async (): Promise<string> => {
      await space.clock.advance(2 * HOUR_MS);
      await sweep(world.table, { now: () => space.clock.now() });
      return shapeOf(await dynamo.shards(USER.entityId, USER.resource));
    };
    expect(await swept()).toBe('0/1');
    const [image] = await dynamo.shards(USER.entityId, USER.resource);
    expect([image?.holders.size, image?.expired]).toEqual([0, 0]);
  });
});
