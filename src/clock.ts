import { SteadyTime, withSharedWallReading } from './core/steady-time.js';
import type { EpochMs } from './core/units.js';
import { machineTime } from './machine-time.js';

declare global {
  /** Merges with the declaration of Node's or the browser's types, so that a project without either compiles too. */
  // oxlint-disable-next-line typescript/no-empty-object-type
  interface AbortSignal {}
}

/** Options of `Clock.sleep`. */
export interface SleepOptions {
  /** The sleep must not keep the process alive, because no caller awaits it. */
  readonly background?: boolean;
}

/** The source of time. All waiting uses it, so that a test can control time. */
export interface Clock {
  /** The time in milliseconds since the epoch. */
  now(): EpochMs;
  /** Resolves after `ms`; rejects with the signal's reason when the signal aborts. Default: a real timer. */
  sleep?(ms: number, signal?: AbortSignal, options?: SleepOptions): Promise<void>;
}

/** The longest delay that `setTimeout` accepts; it fires at once for a longer one. */
const MAX_TIMER_MS = 2_147_483_647;

let steady: SteadyTime | null = null;

/** This machine's clock. Setting the wall clock while the process runs does not change it. */
export const systemClock: Required<Clock> = {
  // Created at the first reading, because importing the module must not read a clock.
  now: () => (steady ??= new SteadyTime(withSharedWallReading(machineTime))).now(),
  sleep: async (ms, signal, options) => {
    for (let restMs = ms; restMs > 0; restMs -= MAX_TIMER_MS) {
      await timer(Math.min(restMs, MAX_TIMER_MS), signal, options?.background ?? false);
    }
  },
};

/** The given clock, with a real timer if it has no `sleep`. */
export function completeClock(clock: Clock): Required<Clock> {
  return clock.sleep === undefined ? { now: () => clock.now(), sleep: systemClock.sleep } : (clock as Required<Clock>);
}

/** Calls `ring` after `ms` unless it is stopped before. Cheaper than `sleep` for code that starts one with every call. */
export function startTimer(clock: Required<Clock>, ms: number, ring: () => void): () => void {
  if (clock.sleep === systemClock.sleep && ms <= MAX_TIMER_MS) {
    const handle = setTimeout(ring, ms);
    return () => clearTimeout(handle);
  }
  const stopped = new AbortController();
  clock.sleep(ms, stopped.signal).then(ring, () => {});
  return () => stopped.abort();
}

function timer(ms: number, signal: AbortSignal | undefined, background: boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    const onAbort = (): void => {
      clearTimeout(handle);
      reject(signal?.reason);
    };
    const handle = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    if (background) handle.unref();
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
