import { Limit } from '../src/core/limit.js';
import type { RateLimiter } from '../src/limiter/rate-limiter.js';
import { sized } from './settings.js';
import type { Point } from './series.js';

const RESOURCE = 'gpt-4';
const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
/** A store is filled for at most this long. The point says how many buckets it got. */
const FILL_MS = 50_000;
const FILL_AT_ONCE = 64;

/** Opens a limiter on the store of the series, with these limits. */
export type Open = (limits: readonly Limit[]) => Promise<RateLimiter>;

/** More than is taken, and refilled so slowly that a bucket stays below its capacity and in the store. */
export function plenty(name: string): Limit {
  return Limit.custom(name, { capacity: 1_000_000_000, refillAmount: 1, refillPeriodMs: DAY_MS });
}

export function bucketCounts(): readonly number[] {
  return [1_000, 10_000, 15_000, 100_000, 1_000_000].map(sized);
}

export function keysOf(count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `user-${at}`);
}

/** Acquires for the keys in turn. */
export function acquirer(limiter: RateLimiter, consume: Readonly<Record<string, number>>, keys: readonly string[]) {
  let next = 0;
  return async (): Promise<void> => {
    const entityId = keys[next++ % keys.length] ?? '';
    const lease = await limiter.acquire({ entityId, resource: RESOURCE, consume });
    await lease.commit();
  };
}

/** Creates buckets, and returns how many there are. */
export async function fill(limiter: RateLimiter, count: number): Promise<number> {
  const call = acquirer(limiter, { rpd: 1 }, keysOf(count));
  const endMs = performance.now() + FILL_MS;
  let filled = 0;
  for (; filled < count && performance.now() < endMs; filled += FILL_AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(FILL_AT_ONCE, count - filled) }, call));
  }
  return Math.min(filled, count);
}

export async function limitPoints(open: Open): Promise<readonly Point[]> {
  return Promise.all(
    [1, 5, 20, 32].map(async (count) => {
      const names = Array.from({ length: count }, (_, at) => `limit-${at}`);
      const limiter = await open(names.map(plenty));
      const consume = Object.fromEntries(names.map((name) => [name, 1]));
      return { label: String(count), call: acquirer(limiter, consume, [`of-${count}-limits`]) };
    }),
  );
}

export async function levelPoints(open: Open): Promise<readonly Point[]> {
  const limiter = await open([plenty('rpd')]);
  const ids = Array.from({ length: 8 }, (_, at) => `level-${at}`);
  for (const [at, id] of ids.entries()) {
    await limiter.entities.create(at === 0 ? { id } : { id, parentId: `level-${at - 1}`, cascade: true });
  }
  return [1, 3, 8].map((count) => ({
    label: String(count),
    call: acquirer(limiter, { rpd: 1 }, [`level-${count - 1}`]),
  }));
}

/** The leases stay open while another lease is taken and given back. */
export async function holderPoints(open: Open): Promise<readonly Point[]> {
  const limiter = await open([Limit.concurrent('slots', 1_000)]);
  return Promise.all(
    [0, 50, 200].map(async (count) => {
      const entityId = `with-${count}-holders`;
      for (let held = 0; held < count; held++) {
        await limiter.acquire({ entityId, resource: RESOURCE, consume: { slots: 1 }, leaseTtlMs: WEEK_MS });
      }
      return { label: String(count), call: acquirer(limiter, { slots: 1 }, [entityId]) };
    }),
  );
}
