import { BackendUnavailable } from '../../../core/errors.js';
import { type Deadline, timeLeftMs } from '../client/deadline.js';

/** Who gives up in line must say so before its own caller stops listening: that would look like a store that is out. */
const MARGIN_MS = 25;

/** Work that would only get into its own way: of one key, one after the other. Other processes do not stand in line. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>();

  async run<T>(key: string, deadline: Deadline, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const mine = (async () => {
      if (before !== undefined && !(await endsWithin(before, timeLeftMs(deadline) - MARGIN_MS))) {
        throw new BackendUnavailable('Other changes of this process came first until the time was over', 'contended');
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

/** Whether it succeeds is its own caller's affair. */
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
