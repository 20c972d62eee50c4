import { type Comparison, compare } from './interleave.js';
import type { Contender } from './race.js';
import { sized } from './settings.js';
import { spreadOf } from './spread.js';

const LATENCY_OPERATIONS = 200;

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
export async function compareLatency(keys: readonly string[], ours: Contender, theirs: Contender): Promise<Comparison> {
  return compare(
    () => latencyUs(keys, ours),
    () => latencyUs(keys, theirs),
  );
}

/** Compares operations per second. */
export async function compareThroughput(load: Load, ours: Contender, theirs: Contender): Promise<Comparison> {
  return compare(
    () => perSecond(load, ours),
    () => perSecond(load, theirs),
  );
}

/** Compares the CPU that this process uses for one operation, in microseconds. The engine is another process. */
export async function compareCpu(load: Load, ours: Contender, theirs: Contender): Promise<Comparison> {
  return compare(
    () => cpuUs(load, ours),
    () => cpuUs(load, theirs),
  );
}

async function latencyUs(keys: readonly string[], contender: Contender): Promise<number> {
  const latencies: number[] = [];
  for (let operation = 0; operation < sized(LATENCY_OPERATIONS); operation++) {
    const startMs = performance.now();
    await contender(keys[operation % keys.length] ?? '');
    latencies.push((performance.now() - startMs) * 1_000);
  }
  return spreadOf(latencies).median;
}

export async function perSecond(load: Load, contender: Contender): Promise<number> {
  const startMs = performance.now();
  const operations = await callAll(load, contender, () => performance.now() - startMs < sized(load.roundMs));
  return (operations / (performance.now() - startMs)) * 1_000;
}

async function cpuUs(load: Load, contender: Contender): Promise<number> {
  const startMs = performance.now();
  const start = process.cpuUsage();
  const operations = await callAll(load, contender, () => performance.now() - startMs < sized(load.roundMs));
  const { user, system } = process.cpuUsage(start);
  return (user + system) / operations;
}

/** Calls every key once. */
export async function callEach(keys: readonly string[], concurrency: number, contender: Contender): Promise<number> {
  return callAll({ keys, concurrency }, contender, (started) => started < keys.length);
}

/** Returns how many operations were done while `goesOn` returned true. */
export async function callAll(
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
