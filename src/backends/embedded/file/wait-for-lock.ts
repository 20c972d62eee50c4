import { BackendUnavailable } from '../../../core/errors.js';
import { isBusy } from './driver.js';

/**
 * A lock lasts some 100 us, which is less than the shortest timer. So a process that finds the file locked first naps a few
 * times, giving up the processor, which the holder may need to finish; half a millisecond in all. Only then does it
 * leave the thread to others. (Measured with 4 processes: spinning through turns of the event loop makes it 5 times worse.)
 */
export const NAPS = 4;
const NAP_MS = 0.1;
/** Tries with the shortest timer before longer ones. */
const SHORT_SLEEPS = 4;
const MAX_SLEEP_MS = 20;

/**
 * How long before the end of a call's time a writer stops waiting for the lock: the caller stops listening then, and
 * would take the silence for an outage, which the policy may answer with an admission. More than a timer is late by.
 */
const SPARE_PART = 0.1;
const LEAST_SPARE_MS = 15;

/** Waits with jitter for another process, in real time: what holds the lock is no fake. */
export async function retryWhileBusy<T>(timeoutMs: number, where: string, attempt: () => T): Promise<T> {
  const endMs = performance.now() + timeoutMs - Math.max(LEAST_SPARE_MS, timeoutMs * SPARE_PART);
  for (let tries = 0; ; tries++) {
    if (performance.now() < endMs) await pause(tries, endMs - performance.now());
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (performance.now() < endMs) continue;
      throw new BackendUnavailable(`${where}: locked by other processes for ${timeoutMs} ms`, 'contended', {
        cause: error,
      });
    }
  }
}

function pause(tries: number, mostMs: number): Promise<void> {
  const sleepMs = Math.random() * Math.min(MAX_SLEEP_MS, 2 ** Math.max(0, tries - SHORT_SLEEPS));
  return new Promise((resolve) => {
    setTimeout(resolve, Math.min(sleepMs, mostMs));
  });
}

const NOBODY_WAKES = new Int32Array(new SharedArrayBuffer(4));

/** Blocks this thread, not the processor. */
export function nap(): void {
  Atomics.wait(NOBODY_WAKES, 0, 0, NAP_MS);
}
