import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { file } from '../../src/backends/embedded/file/file.js';
import { memory } from '../../src/backends/embedded/memory.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { fakeClock } from '../../src/testing/fake-clock.js';
import { cleanLargeFile } from '../support/clean-large-file.js';
import { spreading } from '../support/dynamodb/shard/shards.js';
import { type DynamoWorld, ENGINE, startWorld } from '../support/dynamodb/world.js';
import { BUCKET, deleteExpired, type StoreName } from '../support/features/arenas.js';
import { hasPath } from '../support/features/matrix.js';
import { PauseModel } from '../support/features/pause-model.js';
import { ask, CAPACITY, HOUR_MS, PAUSE_MS, ROWS, rules, type Scene, SLOTS } from '../support/features/pause-rows.js';

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

type Opened = Omit<Scene, 'lease' | 'advance' | 'model'>;

async function openOnDynamoDB(): Promise<Opened> {
  const limits = rules(CAPACITY, SLOTS);
  const space = await world!.space();
  const [one, other] = [await space.open({ limits }, spreading()), await space.open({ limits }, spreading(2))];
  return {
    clock: space.clock,
    one,
    other,
    world,
    space,
    evict: async () => {},
    expire: async () => deleteExpired(world!, space, await space.shards(BUCKET.entityId, BUCKET.resource)),
  };
}

async function openEmbedded(store: 'memory' | 'file'): Promise<Opened> {
  const clock = fakeClock();
  const options = { clock, limits: rules(CAPACITY, SLOTS) };
  files += 1;
  const path = join(folder, `${files}.db`);
  const kept = memory({ keptBuckets: 1 });
  const [one, other] = [
    await RateLimiter.open(store === 'memory' ? kept : file({ path }), options),
    await RateLimiter.open(store === 'memory' ? kept : file({ path }), options),
  ];
  const evict = async (): Promise<void> => {
    if (store === 'file') return cleanLargeFile(path, clock.now());
    for (let user = 0; user < 50; user++) await one.acquire({ ...ask(0), entityId: `other-${clock.now()}-${user}` });
  };
  const expire = async (): Promise<void> => {
    await clock.advance(24 * HOUR_MS);
    await evict();
  };
  return { clock, one, other, world: null, space: null, evict, expire };
}

async function setUp(store: StoreName): Promise<Scene> {
  const opened = await (store === 'dynamodb' ? openOnDynamoDB() : openEmbedded(store));
  const { clock } = opened;
  const model = new PauseModel(CAPACITY, SLOTS, clock.now());
  const lease = await opened.one.acquire({ ...ask(100, 1), leaseTtlMs: 24 * HOUR_MS });
  model.take(100, 1);
  await opened.other.acquire(ask(1));
  model.take(1);
  const advance = async (ms: number): Promise<void> => {
    await clock.advance(ms);
    model.advance(ms);
  };
  const expire = async (): Promise<void> => {
    const beforeMs = clock.now();
    await opened.expire();
    model.advance(clock.now() - beforeMs);
  };
  return { ...opened, lease, model, advance, expire };
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

for (const store of ['memory', 'file', 'dynamodb'] as const) {
  describe.skipIf(store === 'dynamodb' && ENGINE.missing)(`a paused bucket on ${store}`, () => {
    for (const { name, path, run, only } of ROWS) {
      if (!hasPath(store, path) || (only !== undefined && only !== store)) continue;
      test(`${name} leaves the bucket paused until the end, on ${store}, and no token is lost or won`, async () => {
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
