import type { PausedBy, StoredPause } from '../api/types.js';
import { setNewest } from './bounded.js';
import { isRunning } from './gauge.js';

const MAX_PAUSES = 100;

/** `isUnchecked`: it is from before a lost connection, and the store could not be asked whether it still runs. */
export interface ListedPause extends PausedBy {
  readonly isUnchecked?: boolean;
}

type Target = Pick<PausedBy, 'entityId' | 'resource'>;

const keyOf = ({ entityId, resource }: Target): string => `${entityId}\n${resource ?? ''}`;

/** The pauses that events have named, the newest last, in memory of a fixed size. */
export class PauseList {
  readonly #pauses = new Map<string, ListedPause>();

  add(paused: PausedBy): void {
    setNewest(this.#pauses, keyOf(paused), paused, MAX_PAUSES);
  }

  end(target: Target): void {
    this.#pauses.delete(keyOf(target));
  }

  /** Without those that have ended. */
  runningAt(atMs: number): readonly ListedPause[] {
    return [...this.#pauses.values()].filter((paused) => isRunning(paused, atMs));
  }

  /** What the store has of a pause now; null: it could not be read. An event that came meanwhile is newer. */
  check(paused: ListedPause, stored: StoredPause | undefined | null): void {
    const key = keyOf(paused);
    if (this.#pauses.get(key) !== paused) return;
    if (stored === undefined) this.#pauses.delete(key);
    else this.#pauses.set(key, { ...paused, ...stored, isUnchecked: stored === null });
  }
}
