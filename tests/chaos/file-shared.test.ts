import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadDriver } from '../../src/backends/embedded/file/database/driver.js';
import { file } from '../../src/backends/embedded/file/file.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { fakeClock } from '../../src/testing/fake-clock.js';
import type { TakerNews, TakerOrder } from './file-taker.js';
import { ended, forkable } from '../support/processes/fork-bundled.js';

const folder = mkdtempSync(join(tmpdir(), 'headgate-chaos-'));
const BATCH = { entityId: 'shared', resource: 'batch' };
let start: Awaited<ReturnType<typeof forkable>>;

beforeAll(async () => {
  start = await forkable(new URL('./file-taker.ts', import.meta.url));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Starts one taker, and calls `hear` with each of its messages. */
function startTaker(order: TakerOrder, hear: (news: TakerNews, child: ChildProcess) => void): Promise<number | string> {
  const child = start(JSON.stringify(order));
  child.on('message', (news) => hear(news as TakerNews, child));
  return ended(child);
}

function reported(path: string): number {
  return existsSync(path) ? statSync(path).size : 0;
}

describe('four processes on one file', () => {
  test(
    'four processes on one file are granted exactly the capacity, although one of them is killed',
    { timeout: 120_000 },
    async () => {
      const path = join(folder, 'exact.db');
      // One token a year: only the initial tokens can be taken.
      const limits = ['jobs:1/365day:10000'];
      const reports = [0, 1, 2, 3].map((n) => join(folder, `exact-${n}`));
      const exits = await Promise.all(
        reports.map((reportPath, n) =>
          startTaker({ path, reportPath, limits, consume: { jobs: 1 }, attempts: 5_000 }, ({ attempt }, child) => {
            if (n === 0 && attempt >= 1_000) child.kill('SIGKILL');
          }),
        ),
      );
      expect(exits).toEqual(['SIGKILL', 0, 0, 0]);

      const grants = reports.reduce((sum, report) => sum + reported(report), 0);
      const limiter = await RateLimiter.open(file({ path }), { limits: limits.map((text) => Limit.parse(text)) });
      const consumed = (await limiter.buckets.get(BATCH))?.limits[0]?.consumed ?? 0;
      const acquires = (await limiter.buckets.get(BATCH))?.acquires ?? 0;
      await limiter.close();
      expect({ consumed, acquires }).toEqual({ consumed: 10_000, acquires: 10_000 });
      expect(grants).toBeLessThanOrEqual(10_000);
      expect(consumed - grants).toBeLessThanOrEqual(1);

      const database = (await loadDriver()).open(path);
      expect(database.prepare('PRAGMA integrity_check').all()).toEqual([['ok']]);
      database.close();
    },
  );

  test(
    'the slots of a killed process on a file are free at their expiry, not before',
    { timeout: 60_000 },
    async () => {
      const path = join(folder, 'slots.db');
      const limits = ['slots:3/concurrent'];
      const reportPath = join(folder, 'slots-report');
      const exit = await startTaker(
        { path, reportPath, limits, consume: { slots: 1 }, attempts: 100_000 },
        (_, child) => child.kill('SIGKILL'),
      );
      expect([exit, reported(reportPath)]).toEqual(['SIGKILL', 3]);

      const clock = fakeClock(Date.now());
      const limiter = await RateLimiter.open(file({ path }), {
        limits: limits.map((text) => Limit.parse(text)),
        clock,
      });
      const expiries = (await limiter.leases.list(BATCH)).items.map(({ expiresAt }) => expiresAt.getTime());
      expect(expiries).toHaveLength(3);
      clock.set(Math.min(...expiries) - 1);
      expect(await limiter.tryAcquire({ ...BATCH, consume: { slots: 1 } })).toMatchObject({
        granted: false,
        retryAfterMs: 1,
      });
      clock.set(Math.max(...expiries));
      expect(await limiter.tryAcquire({ ...BATCH, consume: { slots: 3 } })).toMatchObject({ granted: true });
      await limiter.close();
    },
  );
});

test('processes that open a new file at the same moment all use it', { timeout: 60_000 }, async () => {
  for (let round = 0; round < 5; round++) {
    const path = join(folder, `new-${round}.db`);
    const order = { path, limits: ['jobs:1/365day:100'], consume: { jobs: 1 }, attempts: 10 };
    const reports = [0, 1, 2, 3].map((n) => join(folder, `new-${round}-${n}`));
    const exits = await Promise.all(reports.map((reportPath) => startTaker({ ...order, reportPath }, () => {})));
    expect(exits).toEqual([0, 0, 0, 0]);
    expect(reports.map(reported)).toEqual([10, 10, 10, 10]);
  }
});
