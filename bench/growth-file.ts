import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RateLimiter } from '../src/limiter/rate-limiter.js';
import { acquirer, bucketCounts, fill, keysOf, plenty } from './growth-points.js';
import { type Point, printSeries } from './series.js';

export async function printFileSeries(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-growth-'));
  const limiters: RateLimiter[] = [];
  try {
    const points: Point[] = [];
    for (const count of bucketCounts()) {
      const path = join(folder, `${count}.db`);
      const limiter = await RateLimiter.open(`file:${path}`, { limits: [plenty('rpd')] });
      limiters.push(limiter);
      const filled = await fill(limiter, count);
      const call = acquirer(limiter, { rpd: 1 }, keysOf(filled));
      points.push({ label: String(filled), call, bytes: sizeOf(path) / filled });
    }
    await printSeries('file, buckets', points);
  } finally {
    for (const limiter of limiters) await limiter.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** With the log of writes that are not in the main file yet. */
function sizeOf(path: string): number {
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  return statSync(path).size + log;
}
