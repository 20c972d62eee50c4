import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Limit, RateLimiter } from 'headgate';
import { FLAGS, PAIRS, sized } from './settings.js';

const TAKERS = 4;
const ATTEMPTS = 1_400;
/** The first acquires of each process load and compile code. */
const WARM_UP = 100;
const THINK_MS = 2;

/**
 * How long each acquire of four processes on one file takes, in microseconds, the shortest first: one list for each part
 * of the time.
 */
export async function latenciesOfTakers(path: string): Promise<readonly (readonly number[])[]> {
  const takers = Array.from({ length: TAKERS }, async () => {
    const child = fork(process.argv[1] ?? '', ['file-taker', path, ...FLAGS]);
    const [latenciesUs] = (await once(child, 'message')) as [readonly number[]];
    return latenciesUs;
  });
  const taken = await Promise.all(takers);
  return Array.from({ length: PAIRS }, (_, part) =>
    taken
      .flatMap((all) => all.slice((all.length * part) / PAIRS, (all.length * (part + 1)) / PAIRS))
      .toSorted((a, b) => a - b),
  );
}

/** What each of the processes does. */
export async function takeFromFile(path: string): Promise<void> {
  const limiter = await RateLimiter.open(`file:${path}`, { limits: [Limit.parse('jobs:1000000/sec')] });
  const latenciesUs: number[] = [];
  for (let attempt = 0; attempt < WARM_UP + sized(ATTEMPTS); attempt++) {
    const startMs = performance.now();
    await limiter.tryAcquire({ entityId: 'shared', resource: 'batch', consume: { jobs: 1 } });
    latenciesUs.push((performance.now() - startMs) * 1_000);
    await new Promise((resolve) => setTimeout(resolve, THINK_MS));
  }
  await limiter.close();
  process.send?.(latenciesUs.slice(WARM_UP));
  process.disconnect();
}
