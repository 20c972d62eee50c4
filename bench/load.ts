import { interleave, median } from './interleave.js';
import type { Contender } from './race.js';

export interface LoadResult {
  readonly ours: number;
  readonly theirs: number;
  /** The median of ours / theirs over the rounds. */
  readonly ratio: number;
}

const LATENCY_ROUNDS = 15;
const LATENCY_OPERATIONS = 100;
const THROUGHPUT_ROUNDS = 5;

export interface Load {
  readonly keys: readonly string[];
  /** The number of concurrent callers. Each asks again as soon as it has its answer. */
  readonly concurrency: number;
  /** How long one round takes. */
  readonly roundMs: number;
}

/*
 * Unlike race.ts, this does not collect garbage between the rounds: a collection also discards compiled code, and the SDK
 * has so much of it that both contenders would run at half their speed.
 */

/** The median latency of one caller that uses each key in turn, in microseconds. */
export async function compareLatency(keys: readonly string[], ours: Contender, theirs: Contender): Promise<LoadResult> {
  return compare(
    LATENCY_ROUNDS,
    () => latencyUs(keys, ours),
    () => latencyUs(keys, theirs),
  );
}

/** Compares operations per second. */
export async function compareThroughput(load: Load, ours: Contender, theirs: Contender): Promise<LoadResult> {
  return compare(
    THROUGHPUT_ROUNDS,
    () => perSecond(load, ours),
    () => perSecond(load, theirs),
  );
}

/** Compares the CPU that this process uses for one operation, in microseconds. The engine is another process. */
export async function compareCpu(load: Load, ours: Contender, theirs: Contender): Promise<LoadResult> {
  return compare(
    THROUGHPUT_ROUNDS,
    () => cpuUs(load, ours),
    () => cpuUs(load, theirs),
  );
}

async function compare(count: number, ours: () => Promise<number>, theirs: () => Promise<number>): Promise<LoadResult> {
  const rounds = await interleave(count, ours, theirs);
  return {
    ours: median(rounds.map((round) => round.ours)),
    theirs: median(rounds.map((round) => round.theirs)),
    ratio: median(rounds.map((round) => round.ours / round.theirs)),
  };
}

async function latencyUs(keys: readonly string[], contender: Contender): Promise<number> {
  const latencies: number[] = [];
  for (let operation = 0; operation < LATENCY_OPERATIONS; operation++) {
    const startMs = performance.now();
    await contender(keys[operation % keys.length] ?? '');
    latencies.push((performance.now() - startMs) * 1_000);
  }
  return median(latencies);
}

async function perSecond(load: Load, contender: Contender): Promise<number> {
  const startMs = performance.now();
  const operations = await callAll(load, contender, () => performance.now() - startMs < load.roundMs);
  return (operations / (performance.now() - startMs)) * 1_000;
}

async function cpuUs(load: Load, contender: Contender): Promise<number> {
  const startMs = performance.now();
  const start = process.cpuUsage();
  const operations = await callAll(load, contender, () => performance.now() - startMs < load.roundMs);
  const { user, system } = process.cpuUsage(start);
  return (user + system) / operations;
}

/** Calls every key once. */
export async function callEach(keys: readonly string[], concurrency: number, contender: Contender): Promise<number> {
  return callAll({ keys, concurrency }, contender, (started) => started < keys.length);
}

/** Returns how many operations were done while `goesOn` returned true. */
async function callAll(
  { keys, concurrency }: Pick<Load, 'keys' | 'concurrency'>,
  contender: Contender,
  goesOn: (started: number) => boolean,
): Promise<number> {
  let started = 0;
  const call = async (): Promise<void> => {
    while (goesOn(started)) await contender(keys[started++ % keys.length] ?? '');
  };
  await Promise.all(Array.from({ length: concurrency }, call));
  return started;
}
