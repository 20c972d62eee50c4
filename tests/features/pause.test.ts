import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { file } from '../../src/backends/embedded/file/file.js';
import { memory } from '../../src/backends/embedded/memory.js';
import { Limit } from '../../src/core/limit.js';
import type { Lease } from '../../src/limiter/lease/lease.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { fault } from '../../src/testing/dynamodb/index.js';
import { type FakeClock, fakeClock } from '../../src/testing/fake-clock.js';
import { mergeShards, shapeOf, splitInto, spreading } from '../support/dynamodb/shards.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../support/dynamodb/world.js';
import { PauseModel } from '../support/features/pause-model.js';

const BUCKET = { entityId: 'user-1', resource: 'gpt-4' } as const;
const CAPACITY = 1_000;
const SLOTS = 20;
/** One token a second. */
const rules = (capacity: number, slots: number) => [
  Limit.custom('rpm', { capacity, refillAmount: 3_600, refillPeriodMs: 3_600_000 }),
  Limit.concurrent('slots', slots),
];
const HOUR_MS = 3_600_000;
/** Shorter than the hour after which cold shards merge in the background, while `compare` reads them. */
const PAUSE_MS = HOUR_MS / 2;

type StoreName = 'memory' | 'file' | 'dynoxide';

/** Two processes on one store, a lease of 100 tokens and a slot, and the model of the bucket. */
interface Scene {
  readonly clock: FakeClock;
  readonly one: RateLimiter;
  readonly other: RateLimiter;
  readonly lease: Lease;
  readonly model: PauseModel;
  readonly space: Space | null;
  /** Moves the clock of the store and of the model. */
  advance(ms: number): Promise<void>;
}

/** A write path: what happens while the bucket is paused, to the store and to the model. */
interface Row {
  readonly path: string;
  readonly run: (scene: Scene) => Promise<void>;
  readonly only?: StoreName;
}

const ask = (tokens: number, slots = 0) => ({ ...BUCKET, consume: { rpm: tokens, slots } });

let world: DynamoWorld | null = null;
const folder = mkdtempSync(join(tmpdir(), 'headgate-pause-'));
let files = 0;

beforeAll(async () => {
  if (!ENGINE.missing) world = await startWorld();
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function open(store: StoreName): Promise<Omit<Scene, 'lease' | 'advance' | 'model'>> {
  const limits = rules(CAPACITY, SLOTS);
  if (store === 'dynoxide') {
    const space = await world!.space();
    const [one, other] = [await space.open({ limits }, spreading()), await space.open({ limits }, spreading(2))];
    return { clock: space.clock, one, other, space };
  }
  const clock = fakeClock();
  const options = { clock, limits };
  files += 1;
  const path = join(folder, `${files}.db`);
  const kept = memory({ keptBuckets: 1 });
  const [one, other] = [
    await RateLimiter.open(store === 'memory' ? kept : file({ path }), options),
    await RateLimiter.open(store === 'memory' ? kept : file({ path }), options),
  ];
  return { clock, one, other, space: null };
}

async function setUp(store: StoreName): Promise<Scene> {
  const opened = await open(store);
  const model = new PauseModel(CAPACITY, SLOTS, opened.clock.now());
  const lease = await opened.one.acquire({ ...ask(100, 1), leaseTtlMs: 24 * HOUR_MS });
  model.take(100, 1);
  await opened.other.acquire(ask(1));
  model.take(1);
  const advance = async (ms: number): Promise<void> => {
    await opened.clock.advance(ms);
    model.advance(ms);
  };
  return { ...opened, lease, model, advance };
}

/** Both processes get the answers of the model, and the bucket has its balances. */
async function compare({ one, other, model }: Scene): Promise<void> {
  for (const limiter of [one, other]) {
    const decision = await limiter.tryAcquire(ask(1));
    const granted = model.take(1);
    expect([decision.granted, decision.granted ? null : decision.retryAfterMs]).toEqual([granted, model.pausedForMs]);
    if (!decision.granted) expect(decision).toMatchObject({ reason: 'paused', paused: { reason: 'vendor' } });
  }
  expect(await one.available(BUCKET)).toEqual(model.available);
}

const ROWS: readonly Row[] = [
  { path: 'a take', run: async () => {} },
  {
    path: 'a take from a full bucket (the full form)',
    run: async ({ lease, model, advance }) => {
      await lease.rollback();
      model.move(-100, -1);
      await advance(PAUSE_MS / 2);
    },
  },
  {
    path: 'an extension of the pause by the other process',
    run: async ({ other, model, advance }) => {
      await other.pause({ ...BUCKET, forMs: 2 * PAUSE_MS, reason: 'vendor' });
      model.pause(2 * PAUSE_MS);
      // The other process may use a pause that it has read for `denyCacheMs`.
      await advance(1_000);
    },
  },
  {
    path: 'a pause that ends earlier',
    run: async ({ other, model }) => {
      await other.pause({ ...BUCKET, forMs: 1_000, reason: 'short' });
      model.pause(1_000);
    },
  },
  {
    path: 'a settlement of parameters',
    run: async ({ one, model, advance }) => {
      await advance(1_000);
      await one.config.setResource(BUCKET.resource, { limits: rules(500, SLOTS - 5) });
      model.tokens = Math.min(model.tokens, 500);
      (model as { capacity: number }).capacity = 500;
      model.slots -= 5;
    },
  },
  {
    path: 'a debit beyond the estimate',
    run: async ({ lease, model }) => {
      await lease.settle({ rpm: 700 });
      model.move(600);
    },
  },
  {
    path: 'a refund',
    run: async ({ lease, model }) => {
      await lease.adjust({ rpm: -60 });
      model.move(-60);
    },
  },
  {
    path: 'a charge and a credit without a lease',
    run: async ({ one, other, model }) => {
      await one.charge({ ...BUCKET, amounts: { rpm: 50 } });
      await other.credit({ ...BUCKET, amounts: { rpm: 20 } });
      await one.charge({ ...BUCKET, amounts: { rpm: 7 }, id: 'receipt-1' });
      model.move(37);
    },
  },
  {
    path: 'an extend',
    run: async ({ lease, advance }) => {
      await lease.extend(48 * HOUR_MS);
      await advance(PAUSE_MS / 2);
    },
  },
  {
    path: 'a release',
    run: async ({ lease, model }) => {
      await lease.release();
      model.move(0, -1);
    },
  },
  {
    path: 'a reclaim of an expired holder',
    run: async ({ one, lease, model, advance }) => {
      await lease.extend(5_000);
      await advance(6_000);
      // A denied ask reclaims; a paused one need not. The balance shows the slot as free in both cases.
      expect((await one.tryAcquire(ask(0, SLOTS))).granted).toBe(false);
      model.move(0, -1);
    },
  },
  {
    path: 'a reset',
    run: async ({ one, model }) => {
      await one.buckets.reset(BUCKET);
      model.fill(CAPACITY, SLOTS);
    },
  },
  {
    path: 'a resume and another pause',
    run: async ({ one, other, model }) => {
      expect(await other.resume(BUCKET)).toBe(true);
      model.resume();
      await one.pause({ ...BUCKET, forMs: 30_000, reason: 'vendor' });
      model.pause(30_000);
    },
  },
  {
    path: 'a take and a settle in one group, of a process that does not know the pause',
    run: async ({ one, other, model, advance }) => {
      await one.resume(BUCKET);
      model.resume();
      await advance(1_000);
      const own = await other.acquire(ask(10));
      model.take(10);
      await one.pause({ ...BUCKET, forMs: PAUSE_MS, reason: 'vendor' });
      model.pause(PAUSE_MS);
      const [before, , after] = await Promise.all([
        other.tryAcquire(ask(5)),
        own.settle({ rpm: 30 }),
        other.tryAcquire(ask(5)),
      ]);
      expect([before.granted, after.granted, model.take(5)]).toEqual([false, false, false]);
      model.move(20);
    },
  },
  {
    path: 'the eviction of idle buckets',
    only: 'memory',
    run: async ({ one, lease, model, advance }) => {
      await lease.rollback();
      model.move(-100, -1);
      await advance(10_000);
      for (let user = 0; user < 50; user++) await one.acquire({ ...ask(0), entityId: `other-${user}` });
    },
  },
  {
    path: 'a split into four shards',
    only: 'dynoxide',
    run: async ({ space }) => {
      await splitInto(4, world!, space!, BUCKET);
      const shards = await space!.shards('user-1', 'gpt-4');
      expect(shapeOf(shards)).toBe('0/4 1/4 2/4 3/4');
      expect(new Set(shards.map(({ pause }) => pause?.reason))).toEqual(new Set(['vendor']));
    },
  },
  {
    path: 'a merge of two shards',
    only: 'dynoxide',
    run: async ({ space, one, lease, model, advance }) => {
      await lease.release();
      model.move(0, -1);
      await splitInto(2, world!, space!, BUCKET);
      await one.pause({ ...BUCKET, forMs: 4 * PAUSE_MS, reason: 'vendor' });
      model.pause(4 * PAUSE_MS);
      await advance(HOUR_MS);
      expect(await mergeShards(world!, space!, BUCKET)).toBe('merged');
      expect(shapeOf(await space!.shards('user-1', 'gpt-4'))).toBe('0/1');
    },
  },
  {
    path: 'a rebase of a balance beyond 2^50',
    only: 'dynoxide',
    run: async ({ space, one, model, advance }) => {
      await one.pause({ ...BUCKET, forMs: 20 * PAUSE_MS, reason: 'vendor' });
      model.pause(20 * PAUSE_MS);
      const limiter = await space!.open({ limits: [Limit.perHour('rpm', 1e12)] });
      const rich = { entityId: 'rich', resource: 'gpt-4' };
      const request = { ...rich, consume: { rpm: 1e12 } };
      await limiter.acquire(request);
      await advance(2 * HOUR_MS);
      const lease = await limiter.acquire(request);
      const baseMs = async () => (await space!.shards('rich', 'gpt-4'))[0]?.baseMs ?? 0;
      const before = await baseMs();
      await advance(1_000);
      await limiter.pause({ ...rich, forMs: 1_000, reason: 'vendor' });
      await lease.rollback();
      expect(await baseMs()).toBeGreaterThan(before);
      limiter.config.cache.clear();
      expect(await limiter.tryAcquire(request)).toMatchObject({ reason: 'paused', retryAfterMs: 1_000 });
      await advance(1_000);
      await limiter.acquire(request);
    },
  },
  {
    path: 'a take that is on its way to the store when the pause is written',
    only: 'dynoxide',
    run: async ({ one, other, model }) => {
      await one.resume(BUCKET);
      model.resume();
      await one.acquire(ask(1));
      model.take(1);
      const held = world!.proxy.inject(fault.holdRequest(), { operations: ['UpdateItem'], times: 1 });
      const asked = one.tryAcquire(ask(5));
      await held.untilFired();
      await other.pause({ ...BUCKET, forMs: PAUSE_MS, reason: 'vendor' });
      model.pause(PAUSE_MS);
      held.release();
      expect([(await asked).granted, model.take(5)]).toEqual([false, false]);
    },
  },
  {
    path: 'the ttl of the bucket',
    only: 'dynoxide',
    run: async ({ space, lease, model, advance }) => {
      const ttl = async () => (await space!.shards('user-1', 'gpt-4')).map(({ ttlSec }) => ttlSec);
      expect(await ttl()).toEqual([null]);
      await advance(120_000);
      await lease.settle({ rpm: 90 });
      model.move(-10);
      expect(await ttl()).toEqual([null]);
    },
  },
];

for (const store of ['memory', 'file', 'dynoxide'] as const) {
  describe.skipIf(store === 'dynoxide' && ENGINE.missing)(`a paused bucket on ${store}`, () => {
    for (const { path, run, only } of ROWS) {
      if (only !== undefined && only !== store) continue;
      test(`${path} leaves the bucket paused until the end, on ${store}, and no token is lost or won`, async () => {
        const scene = await setUp(store);
        await scene.one.pause({ ...BUCKET, forMs: PAUSE_MS, reason: 'vendor' });
        scene.model.pause(PAUSE_MS);
        await compare(scene);
        await run(scene);
        await compare(scene);
        // Both processes have forgotten everything that they have cached.
        for (const limiter of [scene.one, scene.other]) limiter.config.cache.clear();
        await compare(scene);
        await scene.advance((scene.model.pausedForMs ?? 0) - 1_000);
        await compare(scene);
        await scene.advance(1_000);
        await compare(scene);
      });
    }
  });
}
