import { BackendUnavailable } from '../../../core/errors.js';
import { type Deadline, timeLeftMs } from '../../../machine-time.js';

/** A waiter must fail before its caller's timeout, which would look like an outage of the store. */
const MARGIN_MS = 25;

/**
 * Runs the work of one key serially, because concurrent writes of this process would only conflict. Other processes are
 * not affected.
 */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>();

  async run<T>(key: string, deadline: Deadline, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const mine = (async () => {
      if (before !== undefined && !(await endsWithin(before, timeLeftMs(deadline) - MARGIN_MS))) {
        throw new BackendUnavailable('Other changes of this process were in progress until the deadline', 'contended');
      }
      return work();
    })();
    this.#last.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(key) === mine) this.#last.delete(key);
    }
  }
}

/** Resolves true when the work ends in time, with or without success. */
function endsWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    const end = (): void => {
      clearTimeout(timer);
      resolve(true);
    };
    work.then(end, end);
  });
}
