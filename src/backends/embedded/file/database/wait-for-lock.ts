import { BackendUnavailable } from '../../../../core/errors.js';
import { isBusy } from './driver.js';

/**
 * A lock lasts about 100 us, less than the shortest timer. So a process that finds the file locked first naps a few
 * times, which frees the processor for the lock's holder; half a millisecond in all. Only then does it return to the
 * event loop. (Measured with 4 processes: spinning through turns of the event loop is 5 times slower.)
 */
export const NAPS = 4;
const NAP_MS = 0.1;
/** Tries with the shortest timer before longer ones. */
const SHORT_SLEEPS = 4;
const MAX_SLEEP_MS = 20;

/**
 * How long before a call's timeout a writer stops waiting for the lock. After the timeout the caller would see an
 * outage, which the outage policy may answer with an admission. More than the delay of a timer.
 */
const MARGIN_FRACTION = 0.1;
const MIN_MARGIN_MS = 15;

/** Waits with jitter for another process, in real time, because the lock's holder is a real process. */
export async function retryWhileBusy<T>(timeoutMs: number, where: string, attempt: () => T): Promise<T> {
  const endMs = performance.now() + timeoutMs - Math.max(MIN_MARGIN_MS, timeoutMs * MARGIN_FRACTION);
  for (let attempts = 0; ; attempts++) {
    if (performance.now() < endMs) await pause(attempts, endMs - performance.now());
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

function pause(attempts: number, mostMs: number): Promise<void> {
  const sleepMs = Math.random() * Math.min(MAX_SLEEP_MS, 2 ** Math.max(0, attempts - SHORT_SLEEPS));
  return new Promise((resolve) => {
    setTimeout(resolve, Math.min(sleepMs, mostMs));
  });
}

const NEVER_NOTIFIED = new Int32Array(new SharedArrayBuffer(4));

/** Blocks this thread, and frees the processor. */
export function nap(): void {
  Atomics.wait(NEVER_NOTIFIED, 0, 0, NAP_MS);
}
