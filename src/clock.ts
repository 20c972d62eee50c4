import { SteadyTime } from './core/steady-time.js';
import type { EpochMs } from './core/units.js';
import { machineTime } from './machine-time.js';

declare global {
  /** Empty, and merged with the real one of Node's or a browser's types: a project that has neither compiles too. */
  // oxlint-disable-next-line typescript/no-empty-object-type
  interface AbortSignal {}
}

export interface SleepOptions {
  /** Nobody awaits the outcome: the sleep must not keep the process alive. */
  readonly background?: boolean;
}

/** Where time comes from. All waiting goes through it, so that a test can hold time still. */
export interface Clock {
  now(): EpochMs;
  /** Resolves after `ms`; rejects with the signal's reason once it aborts. Real time unless given. */
  sleep?(ms: number, signal?: AbortSignal, options?: SleepOptions): Promise<void>;
}

/** The longest delay that a timer takes before it fires at once. */
const MAX_TIMER_MS = 2_147_483_647;

let steady: SteadyTime | null = null;

/** This machine's clock. A wall clock that is set while the process runs does not move it. */
export const systemClock: Required<Clock> = {
  // From the first reading on: what is only loaded reads no clock.
  now: () => (steady ??= new SteadyTime(machineTime)).now(),
  sleep: async (ms, signal, options) => {
    for (let restMs = ms; restMs > 0; restMs -= MAX_TIMER_MS) {
      await timer(Math.min(restMs, MAX_TIMER_MS), signal, options?.background ?? false);
    }
  },
};

/** The given clock, with real waiting if it has none of its own. */
export function completeClock(clock: Clock): Required<Clock> {
  return clock.sleep === undefined ? { now: () => clock.now(), sleep: systemClock.sleep } : (clock as Required<Clock>);
}

/** Calls `ring` after `ms`, unless it is stopped before: a sleep for whoever starts one with every call. */
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
