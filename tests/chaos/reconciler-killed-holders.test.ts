import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { createTable, dynamodb } from '../../src/backends/dynamodb/index.js';
import { reconcile } from '../../src/backends/dynamodb/reconciler/loop.js';
import { type Engine, startEngine } from '../../src/testing/dynamodb/index.js';
import { ENGINE } from '../support/dynamodb/world.js';
import { killHolders } from '../support/dynamodb/killed-holders.js';

const TABLE = 'killed-holders';
const SLOTS = 40;
const TAKES = 8;
const PROCESSES = 3;
const BUCKET = { entityId: 'shared', resource: 'batch' };
/** A little more than the default lifetime of a lease. */
const LATER_MS = 61_000;

describe.skipIf(ENGINE.missing)(`holders of killed processes${ENGINE.note}`, () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine();
    process.env['AWS_ACCESS_KEY_ID'] = engine.credentials.accessKeyId;
    process.env['AWS_SECRET_ACCESS_KEY'] = engine.credentials.secretAccessKey;
    await createTable({ tableName: TABLE, endpoint: engine.endpoint, region: engine.region });
  });
  afterAll(async () => engine?.stop());

  test('two reconcilers reclaim the slots of killed holders once, and live holders keep theirs', async () => {
    const { endpoint, region } = engine;
    const size = { slots: SLOTS, takes: TAKES };
    const held = await killHolders(PROCESSES, { table: TABLE, region, endpoint, ...size, waits: true });
    await using limiter = await RateLimiter.open(dynamodb({ table: TABLE, endpoint, region }), {
      limits: [Limit.concurrent('slots', SLOTS)],
      timeouts: { callMs: 30_000, acquireMs: 30_000 },
    });
    const alive = await limiter.acquire({ ...BUCKET, consume: { slots: 2 }, leaseTtlMs: 600_000 });
    expect(await limiter.available(BUCKET)).toEqual({ slots: SLOTS - PROCESSES * TAKES - 2 });

    const clock = { now: () => Date.now() + LATER_MS };
    const sweeps = [1, 2].map(async () => reconcile({ table: TABLE, endpoint, region, clock }));
    const reports = await Promise.all(sweeps);
    expect(reports.reduce((sum, { reclaimed }) => sum + reclaimed, 0)).toBe(held.length);
    expect(reports).toMatchObject([
      { failed: 0, healed: 0 },
      { failed: 0, healed: 0 },
    ]);
    const { items } = await limiter.leases.list(BUCKET);
    expect(items.map(({ id }) => id)).toEqual([alive.id]);
    expect(await limiter.available(BUCKET)).toEqual({ slots: SLOTS - 2 });
    expect(await limiter.buckets.get(BUCKET)).toMatchObject({ expired: PROCESSES * TAKES, holders: 1 });
  });
});
