import type { Backend } from '../src/backend.js';
import { BucketCache } from '../src/backends/dynamodb/acquire/bucket-shards.js';
import { adjust } from '../src/backends/dynamodb/acquire/change-level.js';
import { consume } from '../src/backends/dynamodb/acquire/consume.js';
import { PRESSURE } from '../src/backends/dynamodb/bucket/pressure.js';
import { memory } from '../src/backends/embedded/memory.js';
import { BackendUnavailable } from '../src/core/errors.js';
import { Limit } from '../src/core/limit.js';
import { RateLimitExceeded } from '../src/core/rate-limit-exceeded.js';
import { RateLimiter } from '../src/limiter/rate-limiter.js';
import { Random } from '../src/testing/conformance/kit/random.js';
import { PROCESS_COUNTS, sized } from './settings.js';
import { SimulatedStore } from './simulated-store.js';
import { quantile } from './spread.js';
import { figure, inColumns } from './table.js';
import { VirtualTime } from './virtual-time.js';

const CALLERS = 64;
const START_MS = 1_800_000_000_000;
const SETTLE_MS = 2_500;
const PATIENCE_MS = 30_000;

/** The state of the bucket, and the limit that brings it about. */
const BUCKETS = [
  {
    name: 'with room below its capacity',
    limit: 'rpd:1000000000/day',
    takeFirst: 500_000_000,
    waitMs: 0,
    measuredMs: 1_000,
  },
  { name: 'full (the form that sets)', limit: 'rps:1000000000/sec', takeFirst: 0, waitMs: 0, measuredMs: 1_000 },
  { name: 'exhausted at 2,000 a second', limit: 'rps:2000/sec', takeFirst: 0, waitMs: 5_000, measuredMs: 4_000 },
] as const;

type Bucket = (typeof BUCKETS)[number];

/** What all processes did while it was measured. */
interface Figures {
  readonly grantsPerSec: number;
  readonly writesPerGrant: number;
  readonly refusedShare: number;
  readonly throttledShare: number;
  readonly p99Ms: number;
  /** The grants of the process with the fewest, as a share of those of the process with the most. */
  readonly fairness: number;
  readonly shards: number;
}

/** Prints how processes share one bucket on a simulated store, without the noise of this machine. */
export async function showRivals(): Promise<void> {
  const lines = [
    ['bucket', 'processes', 'grants/s', 'writes/grant', 'refused', 'throttled', 'p99 ms', 'least/most', 'shards'],
  ];
  for (const bucket of BUCKETS) {
    for (const processes of PROCESS_COUNTS) {
      process.stderr.write(`${bucket.name}, ${processes} processes\n`);
      const figures = await simulate(bucket, processes);
      lines.push([
        bucket.name,
        String(processes),
        figure(figures.grantsPerSec),
        figures.writesPerGrant.toFixed(3),
        `${(figures.refusedShare * 100).toFixed(0)} %`,
        `${(figures.throttledShare * 100).toFixed(0)} %`,
        figures.p99Ms.toFixed(1),
        figures.fairness.toFixed(2),
        String(figures.shards),
      ]);
    }
  }
  console.log(`Many processes, one bucket, ${CALLERS} callers in each process: a simulation with a seed`);
  console.log('The store answers after 5 ms and accepts 1,000 write units a second on one key; code takes no time\n');
  console.log(inColumns(lines, new Set([0])));
}

async function simulate(bucket: Bucket, processes: number): Promise<Figures> {
  const seeded = new Random(1);
  const random = (): number => seeded.whole(0, 2 ** 32 - 1) / 2 ** 32;
  const time = new VirtualTime();
  return time.run(random, async () => measure(bucket, processes, time, new SimulatedStore(time, random)));
}

async function measure(bucket: Bucket, processes: number, time: VirtualTime, store: SimulatedStore): Promise<Figures> {
  const limit = Limit.parse(bucket.limit);
  const limiters = await Promise.all(Array.from({ length: processes }, async () => openProcess(store, limit, time)));
  const request = { entityId: 'hot', resource: 'gpt-4' };
  if (bucket.takeFirst > 0) await limiters[0]?.acquire({ ...request, consume: { [limit.name]: bucket.takeFirst } });
  const wait = bucket.waitMs > 0 ? { wait: { timeoutMs: bucket.waitMs } } : {};
  const ask = { ...request, consume: { [limit.name]: 1 }, ...wait };
  const fromMs = time.nowMs + SETTLE_MS;
  const toMs = fromMs + sized(bucket.measuredMs);
  const latenciesMs = limiters.map((): number[] => []);
  const call = async (limiter: RateLimiter, process: number): Promise<void> => {
    while (time.nowMs < toMs) {
      const startMs = time.nowMs;
      const isGranted = await limiter.acquire(ask).then(async (lease) => (await lease.commit(), true), refused);
      if (isGranted && time.nowMs >= fromMs && time.nowMs < toMs) latenciesMs[process]?.push(time.nowMs - startMs);
    }
  };
  const calls = limiters.flatMap((limiter, process) =>
    Array.from({ length: CALLERS }, async () => call(limiter, process)),
  );
  await time.sleep(SETTLE_MS);
  const before = { ...store.counts };
  await time.sleep(toMs - fromMs);
  const writes = store.counts.writes - before.writes;
  const refusedWrites = store.counts.refused - before.refused;
  const throttled = store.counts.throttled - before.throttled;
  await Promise.all(calls);
  const grants = latenciesMs.map(({ length }) => length);
  const all = latenciesMs.flat().toSorted((a, b) => a - b);
  return {
    grantsPerSec: (all.length / (toMs - fromMs)) * 1_000,
    writesPerGrant: writes / all.length,
    refusedShare: refusedWrites / writes,
    throttledShare: throttled / writes,
    p99Ms: quantile(all, 0.99),
    fairness: Math.min(...grants) / Math.max(...grants),
    shards: store.shardCount,
  };
}

/** A limiter with caches of its own, whose buckets are in the simulated store. The config is in memory. */
async function openProcess(store: SimulatedStore, limit: Limit, time: VirtualTime): Promise<RateLimiter> {
  const buckets = new BucketCache((ns) => store.executor(ns), Math.random, PRESSURE);
  // Without its resident buckets, which answer without the simulated store.
  const { resident: _, ...config } = memory();
  const backend: Backend = {
    ...config,
    consume: (call, request) => consume(buckets, call, request),
    adjust: (call, request) => adjust(buckets, call, request),
  };
  return RateLimiter.open(backend, {
    limits: [limit],
    clock: { now: () => START_MS + Math.floor(time.nowMs) },
    timeouts: { callMs: PATIENCE_MS, acquireMs: PATIENCE_MS },
  });
}

function refused(error: unknown): boolean {
  // An ask that was throttled again and again fails.
  if (error instanceof RateLimitExceeded || error instanceof BackendUnavailable) return false;
  throw error;
}
