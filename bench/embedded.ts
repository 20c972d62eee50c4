import { Limit, RateLimiter } from 'headgate';
import { RateLimiterMemory, RateLimiterUnion } from 'rate-limiter-flexible';
import { fileRows } from './file.js';
import { heapGrowth } from './heap.js';
import { compare, INVERSE } from './interleave.js';
import { type Contender, race } from './race.js';
import { sized } from './settings.js';
import type { Row } from './table.js';

/** Large enough that nothing is denied. */
const PLENTY = 10_000_000;
const DAY_S = 86_400;
/** At most 1.2 times the bytes of the peer. */
const BYTES_GOAL = 0.83;
const KEYS = Array.from({ length: 1_000 }, (_, index) => `user-${index}`);
const HEAP_KEYS = Array.from({ length: sized(10_000) }, (_, index) => `idle-${index}`);

async function headgateGrant(...names: readonly string[]): Promise<Contender> {
  const limiter = await RateLimiter.open('memory:', { limits: names.map((name) => Limit.perMinute(name, PLENTY)) });
  const consume = Object.fromEntries(names.map((name) => [name, 1]));
  return async (key) => {
    const lease = await limiter.acquire({ entityId: key, resource: 'gpt-4', consume });
    await lease.commit();
  };
}

async function headgateDeny(): Promise<Contender> {
  const limiter = await RateLimiter.open('memory:', { limits: [Limit.perDay('rpd', 1)] });
  const ask = (key: string) => limiter.tryAcquire({ entityId: key, resource: 'gpt-4', consume: { rpd: 1 } });
  for (const key of KEYS) await ask(key);
  return async (key) => {
    if ((await ask(key)).granted) throw new Error('Expected a denial');
  };
}

const flexible = (keyPrefix: string, points = PLENTY, duration = 60) =>
  new RateLimiterMemory({ keyPrefix, points, duration });

function flexibleGrant(limiter: RateLimiterMemory | RateLimiterUnion): Contender {
  return async (key) => {
    await limiter.consume(key, 1);
  };
}

async function flexibleDeny(): Promise<Contender> {
  const limiter = flexible('rpd', 1, DAY_S);
  for (const key of KEYS) await limiter.consume(key, 1);
  return async (key) => {
    const granted = await limiter.consume(key, 1).then(
      () => true,
      () => false,
    );
    if (granted) throw new Error('Expected a denial');
  };
}

/** Takes one token of a slow rate from each key, because a bucket that is full again would be dropped before the count. */
async function headgateBytes(...names: readonly string[]): Promise<number> {
  const limiter = await RateLimiter.open('memory:', { limits: names.map((name) => Limit.perDay(name, 10)) });
  const consume = Object.fromEntries(names.map((name) => [name, 1]));
  return bytesPerKey(limiter, async (key) => {
    const lease = await limiter.acquire({ entityId: key, resource: 'gpt-4', consume });
    await lease.commit();
  });
}

async function flexibleBytes(limiter: RateLimiterMemory | RateLimiterUnion): Promise<number> {
  return bytesPerKey(limiter, flexibleGrant(limiter));
}

async function bytesPerKey(limiter: object, use: Contender): Promise<number> {
  // A first use compiles code and creates tables, which must not count as the size of a bucket.
  await use('warm-up');
  const { bytes } = await heapGrowth(async () => {
    for (const key of HEAP_KEYS) await use(key);
    return limiter;
  });
  return bytes / HEAP_KEYS.length;
}

const union = (points = PLENTY, duration = 60) =>
  new RateLimiterUnion(flexible('rpm', points, duration), flexible('tpm', points, duration));

/** Measures the memory store and the file store. */
export async function* embeddedRows(): AsyncGenerator<Row> {
  yield {
    name: 'acquire + commit, 2 limits / union of 2',
    unit: 'ns/op',
    goal: 2,
    ...(await race(KEYS, await headgateGrant('rpm', 'tpm'), flexibleGrant(union()))),
  };
  yield {
    name: 'acquire + commit, 1 limit / memory',
    unit: 'ns/op',
    goal: 0.65,
    ...(await race(KEYS, await headgateGrant('rpm'), flexibleGrant(flexible('rpm')))),
  };
  yield { name: 'denied / denied', unit: 'ns/op', ...(await race(KEYS, await headgateDeny(), await flexibleDeny())) };
  for (const [name, ours, theirs] of [
    [
      'idle bucket, 2 limits / union of 2',
      async () => headgateBytes('rpm', 'tpm'),
      async () => flexibleBytes(union(10, DAY_S)),
    ],
    [
      'idle bucket, 1 limit / memory',
      async () => headgateBytes('rpm'),
      async () => flexibleBytes(flexible('rpm', 10, DAY_S)),
    ],
  ] as const) {
    yield { name, unit: 'bytes', goal: BYTES_GOAL, ...(await compare(ours, theirs, INVERSE)) };
  }
  yield* await fileRows(KEYS);
}
