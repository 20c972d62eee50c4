import type { Clock } from '../clock.js';
import type { EpochMs } from '../core/units.js';

interface Sleeper {
  readonly wakeAtMs: EpochMs;
  readonly wake: () => void;
}

/** A clock that only moves when a test moves it. */
export interface FakeClock extends Required<Clock> {
  /** Moves time forward and wakes the sleepers that are due, in order. Each one runs before time moves further. */
  advance(ms: number): Promise<void>;
  /** Sets the time without waking sleepers; also backwards. */
  set(nowMs: EpochMs): void;
  /** The number of current sleepers. */
  readonly sleepers: number;
}

/** 2027-01-15T08:00:00Z: far from the ends of hours, days and months. */
const START_MS = 1_800_000_000_000;

/** Turns of the event loop that a woken sleeper gets before time moves further: enough for a chain of awaits. */
const TURNS = 3;

export function fakeClock(startMs: EpochMs = START_MS): FakeClock {
  let nowMs = startMs;
  const sleepers = new Set<Sleeper>();

  return {
    now: () => nowMs,

    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted === true) {
          reject(signal.reason);
          return;
        }
        const sleeper = { wakeAtMs: nowMs + ms, wake };
        const onAbort = (): void => {
          sleepers.delete(sleeper);
          reject(signal?.reason);
        };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', onAbort, { once: true });

        function wake(): void {
          sleepers.delete(sleeper);
          signal?.removeEventListener('abort', onAbort);
          resolve();
        }
      }),

    advance: async (ms) => {
      const endMs = nowMs + ms;
      await turns();
      for (let next = earliest(endMs); next !== undefined; next = earliest(endMs)) {
        nowMs = Math.max(nowMs, next.wakeAtMs);
        next.wake();
        await turns();
      }
      nowMs = endMs;
    },

    set: (ms) => {
      nowMs = ms;
    },

    get sleepers() {
      return sleepers.size;
    },
  };

  function earliest(untilMs: EpochMs): Sleeper | undefined {
    let found: Sleeper | undefined;
    for (const sleeper of sleepers) {
      if (sleeper.wakeAtMs <= untilMs && (found === undefined || sleeper.wakeAtMs < found.wakeAtMs)) found = sleeper;
    }
    return found;
  }
}

/** Runs everything that is ready. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => setImmediate(resolve));
}
