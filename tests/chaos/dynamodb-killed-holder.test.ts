import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTable, dynamodb } from '../../src/backends/dynamodb/index.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { type Engine, startEngine } from '../../src/testing/dynamodb/index.js';
import { fakeClock } from '../../src/testing/fake-clock.js';
import type { HolderNews, HolderOrder } from '../support/processes/holder.js';
import { ENGINE } from '../support/dynamodb/world.js';
import { ended, forkable } from '../support/processes/fork-bundled.js';

const BATCH = { entityId: 'shared', resource: 'batch' };
const SLOTS = 3;

describe.skipIf(ENGINE.missing)(`processes that hold slots${ENGINE.note}`, () => {
  let engine: Engine;
  let start: Awaited<ReturnType<typeof forkable>>;

  beforeAll(async () => {
    engine = await startEngine();
    process.env['AWS_ACCESS_KEY_ID'] = engine.credentials.accessKeyId;
    process.env['AWS_SECRET_ACCESS_KEY'] = engine.credentials.secretAccessKey;
    start = await forkable(new URL('../support/processes/holder.ts', import.meta.url));
  });
  afterAll(async () => engine?.stop());

  test('a process killed with -9 leaves its slots to the next caller at their expiry, not before, without a reconciler', async () => {
    const table = 'killed';
    const { endpoint, region } = engine;
    await createTable({ tableName: table, endpoint, region });
    const order: HolderOrder = { table, region, endpoint, slots: SLOTS, takes: SLOTS, waits: true };
    const child = start(JSON.stringify(order));
    const [{ leaseIds }] = (await once(child, 'message')) as [HolderNews];
    expect(leaseIds).toHaveLength(SLOTS);
    const exit = ended(child);
    child.kill('SIGKILL');
    expect(await exit).toBe('SIGKILL');

    const clock = fakeClock(Date.now());
    const limiter = await RateLimiter.open(dynamodb({ table, endpoint, region }), {
      limits: [Limit.concurrent('slots', SLOTS)],
      timeouts: { callMs: 10_000, acquireMs: 10_000 },
      clock,
    });
    const holders = (await limiter.leases.list(BATCH)).items;
    expect(holders.map(({ id }) => id).toSorted()).toEqual([...leaseIds].toSorted());
    const expiries = holders.map(({ expiresAt }) => expiresAt.getTime());
    clock.set(Math.min(...expiries) - 1);
    expect(await limiter.tryAcquire({ ...BATCH, consume: { slots: 1 } })).toMatchObject({
      granted: false,
      retryAfterMs: 1,
    });
    clock.set(Math.max(...expiries));
    const lease = await limiter.acquire({ ...BATCH, consume: { slots: SLOTS } });
    expect((await limiter.leases.list(BATCH)).items.map(({ id }) => id)).toEqual([lease.id]);
    expect(await limiter.buckets.get(BATCH)).toMatchObject({ acquires: SLOTS + 1, expired: SLOTS, holders: 1 });
    await limiter.close();
  });

  test('a process that closes its limiter on SIGTERM gives every slot back before it ends', async () => {
    const table = 'terminated';
    const { endpoint, region } = engine;
    await createTable({ tableName: table, endpoint, region });
    const order: HolderOrder = { table, region, endpoint, slots: 10, takes: 10, waits: true };
    const child = start(JSON.stringify(order));
    await once(child, 'message');
    const exit = ended(child);
    child.kill('SIGTERM');
    expect(await exit).toBe(0);
    await using limiter = await RateLimiter.open(dynamodb({ table, endpoint, region }), {
      limits: [Limit.concurrent('slots', 10)],
    });
    expect(await limiter.available(BATCH)).toEqual({ slots: 10 });
  });
});
