import { interleave, median } from './interleave.js';
import type { Contender } from './race.js';

export interface LoadResult {
  readonly ours: number;
  readonly theirs: number;
  /** Median of the rounds' ours / theirs. */
  readonly ratio: number;
}

const ROUNDS = 5;
const LATENCY_OPERATIONS = 400;
const ROUND_MS = 1_000;

interface Load {
  readonly keys: readonly string[];
  /** How many callers ask at a time, each again as soon as it has its answer. */
  readonly concurrency: number;
}

/** Median latency of one caller that takes the keys in turn, in microseconds. */
export async function compareLatency(keys: readonly string[], ours: Contender, theirs: Contender): Promise<LoadResult> {
  return compare(
    () => latencyUs(keys, ours),
    () => latencyUs(keys, theirs),
  );
}

/** Operations a second. */
export async function compareThroughput(load: Load, ours: Contender, theirs: Contender): Promise<LoadResult> {
  return compare(
    () => perSecond(load, ours),
    () => perSecond(load, theirs),
  );
}

async function compare(ours: () => Promise<number>, theirs: () => Promise<number>): Promise<LoadResult> {
  const rounds = await interleave(ROUNDS, ours, theirs);
  return {
    ours: median(rounds.map((round) => round.ours)),
    theirs: median(rounds.map((round) => round.theirs)),
    ratio: median(rounds.map((round) => round.ours / round.theirs)),
  };
}

async function latencyUs(keys: readonly string[], contender: Contender): Promise<number> {
  globalThis.gc?.();
  const latencies: number[] = [];
  for (let operation = 0; operation < LATENCY_OPERATIONS; operation++) {
    const startMs = performance.now();
    await contender(keys[operation % keys.length] ?? '');
    latencies.push((performance.now() - startMs) * 1_000);
  }
  return median(latencies);
}

async function perSecond(load: Load, contender: Contender): Promise<number> {
  globalThis.gc?.();
  const startMs = performance.now();
  const operations = await callAll(load, contender, () => performance.now() - startMs < ROUND_MS);
  return (operations / (performance.now() - startMs)) * 1_000;
}

/** Calls every key once. */
export async function callEach(keys: readonly string[], concurrency: number, contender: Contender): Promise<number> {
  return callAll({ keys, concurrency }, contender, (started) => started < keys.length);
}

/** Gives how many operations were done while `goesOn`. */
async function callAll(
  { keys, concurrency }: Load,
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
