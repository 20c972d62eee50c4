import { isHeadgateError } from '../../../core/errors.js';
import { pause } from '../client/deadline.js';

const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 5_000;
const PATIENCE_MS = 120_000;

/** For each request that a migration makes. */
export const REQUEST_MS = 10_000;

/**
 * Repeats what a table that is throttled or out for a moment did not answer: nobody's call waits for a migration, and
 * everything that it does may be done twice.
 */
export async function withRetries<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const startMs = performance.now();
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      const passing = isHeadgateError(error, 'backend.unavailable');
      if (!passing || performance.now() - startMs + waitMs > PATIENCE_MS) throw error;
      await pause(waitMs);
    }
  }
}
