import { expect, test } from 'vitest';
import { fakeClock } from '../../../testing/fake-clock.js';
import { purgeUntilEmpty } from './purge-passes.js';

/** Runs a purge whose passes find these numbers of records, with a clock that advances by each sleep. */
async function purge(finds: readonly number[], noticedAfterMs: number) {
  const clock = fakeClock(0);
  const left = [...finds];
  const log: string[] = [];
  const pass = async (): Promise<number> => {
    const found = left.shift() ?? Number.NaN;
    log.push(`${clock.now()} ${found}`);
    return found;
  };
  const waiting = { ...clock, sleep: async (ms: number) => clock.advance(ms), now: () => clock.now() };
  const told: string[] = [];
  const onProgress = (removed: number, isWaiting: boolean): void => void told.push(`${removed} ${isWaiting}`);
  const removed = await purgeUntilEmpty({ pass, noticedAfterMs, clock: waiting, onProgress });
  return { removed, log, told };
}

test('a purge continues until a pass finds nothing', async () => {
  const { removed, log, told } = await purge([3, 1, 0], 0);
  expect([removed, log, told]).toEqual([4, ['0 3', '0 1', '0 0'], ['3 false', '4 false']]);
});

test('a purge checks again after all clients have noticed, and removes what they wrote meanwhile', async () => {
  const { removed, log, told } = await purge([3, 0, 2, 0], 60_000);
  expect([removed, log]).toEqual([5, ['0 3', '0 0', '60000 2', '60000 0']]);
  expect(told).toEqual(['3 false', '3 true', '5 false']);
});
