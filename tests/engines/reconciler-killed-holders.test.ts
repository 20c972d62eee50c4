import { describe, expect, test } from 'vitest';
import { createTable, dynamodb } from '../../src/backends/dynamodb/index.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { reconcile } from '../../src/backends/dynamodb/reconciler/loop.js';
import { findEngine, startEngine } from '../../src/testing/dynamodb/index.js';
import { killHolders } from '../support/dynamodb/killed-holders.js';

const TABLE = 'killed-holders';
const SLOTS = 30;
const BUCKETS = 50;
const PROCESSES = 4;
const TAKES = 250;
/** A little more than the default lifetime of a lease. */
const LATER_MS = 61_000;

/** The full size. `npm test` runs a small version. */
describe.each(['dynoxide', 'extenddb'] as const)('holders of killed processes on %s', (name) => {
  const found = findEngine(name);
  const note = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;

  test.skipIf(found.status !== 'available')(
    `1,000 holders of killed processes are reclaimed once, and no others${note}`,
    { timeout: 300_000 },
    async () => {
      await using engine = await startEngine(name);
      const { endpoint, region, credentials } = engine;
      process.env['AWS_ACCESS_KEY_ID'] = credentials.accessKeyId;
      process.env['AWS_SECRET_ACCESS_KEY'] = credentials.secretAccessKey;
      await createTable({ tableName: TABLE, endpoint, region });
      await using limiter = await RateLimiter.open(dynamodb({ table: TABLE, endpoint, region }), {
        limits: [Limit.concurrent('slots', SLOTS)],
        timeouts: { callMs: 30_000, acquireMs: 30_000 },
      });
      const buckets = Array.from({ length: BUCKETS }, (_, at) => ({ entityId: `shared-${at}`, resource: 'batch' }));
      const ask = { consume: { slots: 1 } };
      const alive = await Promise.all(
        buckets.map(async (bucket) => {
          const extended = await limiter.acquire({ ...bucket, ...ask });
          await extended.extend(600_000);
          const long = await limiter.acquire({ ...bucket, ...ask, leaseTtlMs: 600_000 });
          return [extended.id, long.id].toSorted();
        }),
      );

      const size = { slots: SLOTS, takes: TAKES, buckets: BUCKETS };
      const held = await killHolders(PROCESSES, { table: TABLE, region, endpoint, ...size, waits: true });
      // Lease ids are unique within a bucket, not across buckets.
      expect(held).toHaveLength(1_000);

      const clock = { now: () => Date.now() + LATER_MS };
      const reports = await Promise.all([1, 2].map(async () => reconcile({ table: TABLE, endpoint, region, clock })));
      expect(reports.reduce((sum, { reclaimed }) => sum + reclaimed, 0)).toBe(1_000);
      expect(reports.map(({ failed, healed }) => [failed, healed])).toEqual([
        [0, 0],
        [0, 0],
      ]);
      for (const [at, bucket] of buckets.entries()) {
        const { items } = await limiter.leases.list(bucket);
        expect(items.map(({ id }) => id).toSorted()).toEqual(alive[at]);
        expect(await limiter.available(bucket)).toEqual({ slots: SLOTS - 2 });
        expect(await limiter.buckets.get(bucket)).toMatchObject({ expired: 20, holders: 2 });
      }
    },
  );
});
