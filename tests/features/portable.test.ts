import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sweep } from '../../src/backends/dynamodb/reconciler/sweep.js';
import type { Lease } from '../../src/limiter/lease/lease.js';
import type { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { fault } from '../../src/testing/dynamodb/index.js';
import { shapeOf, splitInto, spreading } from '../support/dynamodb/shard/shards.js';
import { DayBalances } from '../support/features/day-balances.js';
import { hasPath } from '../support/features/matrix.js';
import { PortableModel } from '../support/features/portable-model.js';
import {
  DAY_MS,
  HOUR_MS,
  LIMITS,
  PORTABLE_LOSSES,
  PORTABLE_PATHS,
  type Scene,
  TAKEN,
  USER,
} from '../support/features/portable-paths.js';
import { type FeatureStore, SECRET, STORES } from '../support/features/portable-stores.js';

const ASK = { ...USER, consume: TAKEN, portable: true };

async function consumed(limiter: RateLimiter, entityId = USER.entityId): Promise<Record<string, number>> {
  const { limits = [] } = (await limiter.buckets.get({ ...USER, entityId })) ?? {};
  return Object.fromEntries(limits.map(({ limit, consumed: count }) => [limit.name, count]));
}

/** The counters and the balances of every level are those of the model. */
async function compare({ space, there, model, balances }: Scene, levels = ALONE): Promise<void> {
  const { rpd, tpd, slots } = model.taken;
  const { others } = balances;
  const all = { rpd: rpd + others.rpd, tpd: tpd + others.tpd, slots: slots + others.slots };
  const left = balances.after(space.clock.now(), model.taken);
  for (const entityId of levels) {
    expect([entityId, await consumed(there, entityId)]).toMatchObject([entityId, all]);
    expect([entityId, await there.available({ ...USER, entityId })]).toMatchObject([entityId, left]);
  }
}

const ALONE: readonly string[] = [USER.entityId];
const BOTH: readonly string[] = [USER.entityId, 'team'];

describe.each(STORES)('portable leases and every write path on %s', (name, start) => {
  let store: FeatureStore;
  beforeAll(async () => {
    store = await start();
  });
  afterAll(async () => store?.[Symbol.asyncDispose]());

  const open = async (options = {}, levels = ALONE): Promise<Scene> => {
    const space = await store.space();
    const [{ limiter: here }, { limiter: there }] = [
      await space.process({ limits: LIMITS, ...options }),
      await space.process({ limits: LIMITS, ...options }),
    ];
    if (levels === BOTH) {
      await here.entities.create({ id: 'team' });
      await here.entities.create({ id: USER.entityId, parentId: 'team', cascade: true });
    }
    const lease = await here.acquire(ASK);
    const balances = new DayBalances(space.clock.now());
    return { space, here, there, lease, token: await lease.token(), model: new PortableModel(TAKEN), balances };
  };
  const paths = PORTABLE_PATHS.filter(({ path }) => hasPath(name, path)).map((path) => [path.name, path] as const);

  const ofLevels = paths.flatMap(([path, row]) => [
    [path, 'alone', ALONE, row] as const,
    [path, 'with its parent', BOTH, row] as const,
  ]);

  test.each(ofLevels)('%s leaves the lease of an entity %s and its end exact', async (_, _level, levels, { run }) => {
    for (const end of ['commit', 'rollback'] as const) {
      const scene = await open({}, levels);
      await compare(scene, levels);
      await run(scene);
      await compare(scene, levels);
      for (const limiter of [scene.there, scene.here]) await (await limiter.leases.resume(scene.token))[end]();
      scene.model.apply(end === 'commit' ? { kind: end, tpd: null } : { kind: end });
      await compare(scene, levels);
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
    await compare(scene);
    await run(quiet).catch((error: unknown) => expect(error).toMatchObject({ code: 'lease.closed' }));
    await (await there.leases.resume(token)).commit({ tpd: 900 });
    await expect((await there.leases.resume(token)).rollback()).rejects.toMatchObject({ code: 'lease.closed' });
    await compare(scene);
  });

  const losses = PORTABLE_LOSSES.map((loss) => [loss.name, loss] as const);

  test.each(losses)('%s ends the holder, and a later end of the lease is exact', async (_, loss) => {
    for (const end of ['commit', 'rollback'] as const) {
      const scene = await open(loss.onExpiry === undefined ? {} : { onExpiry: loss.onExpiry });
      await compare(scene);
      await loss.run(scene);
      await compare(scene);
      const others = { rpd: 20, tpd: 20_000, slots: 0 };
      await scene.here.acquire({ ...USER, consume: others });
      scene.balances.takeForOthers(others);
      await (await scene.there.leases.resume(scene.token))[end]();
      // The caller has used what the expiry had given back.
      if (end === 'commit' && loss.onExpiry === 'refund') Object.assign(scene.model.taken, { ...TAKEN, slots: 0 });
      await compare(scene);
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
