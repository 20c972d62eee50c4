import { expect, test } from 'vitest';
import { Limit } from '../../core/limit.js';
import { consume } from './consume.js';
import { RateLimiter } from '../../limiter/rate-limiter.js';
import { fakeClock } from '../../testing/fake-clock.js';
import { memory } from './memory.js';
import { MemorySpace } from './memory-space.js';
import { queryUsage } from './usage.js';

const NOW_MS = 1_800_001_800_000;
const ALL = { limit: Number.MAX_SAFE_INTEGER, after: null };
const LIMITS = [Limit.perMinute('rpm', 60), Limit.perDay('rpd', 100)];

function take(space: MemorySpace, entityId: string, name: string, nowMs: number): void {
  const asks = [{ name, milli: 1_000 }];
  const version = { sequence: 0, openedAtMs: 0 };
  const level = { entityId, resource: 'gpt-4', limits: LIMITS, version, asks, holder: null };
  expect(consume(space, { leaseId: null, levels: [level] }, nowMs).kind).toBe('granted');
}

test('memory stays bounded: idle buckets are deleted, others never, and no usage is lost', () => {
  const space = new MemorySpace();
  take(space, 'busy', 'rpd', NOW_MS);
  for (let n = 0; n < 25_000; n++) take(space, `user-${n}`, 'rpm', NOW_MS + n);
  const buckets = space.bucketsOfResource('gpt-4', ALL).items;
  // Each bucket is full again 1,000 ms after its take.
  expect(buckets.length).toBeLessThanOrEqual(10_001);
  expect(space.readBucket('busy', 'gpt-4')?.limits[1]).toMatchObject({ tokensMilli: 99_000 });
  expect(space.readBucket('user-24999', 'gpt-4')).toBeDefined();
  const usageOf = (entityId: string) =>
    queryUsage(space, { entityId, resource: 'gpt-4', window: 'daily', fromMs: 0, toMs: 2 * NOW_MS }, ALL, NOW_MS).items;
  const forgotten = Array.from({ length: 25_000 }, (_, n) => `user-${n}`).filter(
    (id) => space.readBucket(id, 'gpt-4') === undefined,
  );
  // The ledger is bounded too: it still has the newest entries.
  for (const id of [...forgotten.slice(-5_000, -4_980), ...forgotten.slice(-20), 'user-24999'])
    expect(usageOf(id)).toMatchObject([{ acquires: 1 }]);
});

test('buckets whose holders have expired are deleted too, and the expiries are counted', async () => {
  const clock = fakeClock();
  const limiter = await RateLimiter.open(memory(), { limits: [Limit.concurrent('slots', 1)], clock });
  for (let n = 0; n < 25_000; n++) {
    await limiter.acquire({ entityId: `user-${n}`, resource: 'gpt-4', consume: { slots: 1 } });
    clock.set(clock.now() + 100);
  }
  let buckets = 0;
  for await (const { holders } of limiter.buckets.list({ resource: 'gpt-4', limit: 1_000 }))
    buckets += holders >= 0 ? 1 : 0;
  expect(buckets).toBeLessThanOrEqual(10_001);
});

test(
  'the audit of namespaces in memory keeps the newest records, as that of one namespace does',
  { timeout: 120_000 },
  async () => {
    const clock = fakeClock();
    const limiter = await RateLimiter.open(memory({ namespaces: ['default', 'other'] }), { limits: LIMITS, clock });
    for (let changes = 0; changes < 20_004; changes += 2) {
      await limiter.namespaces.delete('other');
      await limiter.namespaces.recover('other');
    }
    let records = 0;
    for await (const _ of limiter.audit.list({ namespace: 'other' })) records += 1;
    expect(records).toBe(10_003);
  },
);
