import { isHeadgateError } from '../../../core/errors.js';
import { sleep } from '../../../machine-time.js';

const FIRST_WAIT_MS = 200;
const MAX_WAIT_MS = 5_000;
const MAX_RETRY_MS = 120_000;

/**
 * Retries work that failed because the table was throttled or unavailable. No caller waits for a migration, and all its
 * work may be repeated.
 */
export async function withRetries<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const startMs = performance.now();
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(2 * waitMs, MAX_WAIT_MS)) {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      const isTransient = isHeadgateError(error, 'backend.unavailable');
      if (!isTransient || performance.now() - startMs + waitMs > MAX_RETRY_MS) throw error;
      await sleep(waitMs);
    }
  }
}
