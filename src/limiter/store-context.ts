import type { Backend, Tuning } from '../backend.js';
import type { ResidentBuckets } from '../core/bucket/resident-buckets.js';
import type { Clock } from '../clock.js';
import type { ResolvedOptions } from './options.js';
import type { Guard } from './outage/guard.js';

/** What all namespaces of one opened store share. */
export interface StoreContext {
  readonly backend: Backend;
  /** The buckets of a store in this process, unless a wrapper has replaced its `consume`; null: there are none. */
  readonly resident: ResidentBuckets | null;
  readonly guard: Guard;
  readonly clock: Required<Clock>;
  readonly random: () => number;
  readonly options: ResolvedOptions;
  /** The options that a store needs. */
  readonly tuning: Tuning;
}

/** Calls `onError`. An exception that it throws becomes a process warning, so that it cannot break the caller. */
export function report(options: ResolvedOptions, error: unknown, where: string): void {
  callListener(options.onError, [error, where], (thrown) => {
    process.emitWarning(`onError threw: ${String(thrown)}`, 'HeadgateWarning');
  });
}

/** Calls a listener of the caller. `onFailure` gets what it throws, or what its promise rejects with if it is async. */
export function callListener<Args extends readonly unknown[]>(
  listener: (...args: Args) => unknown,
  args: Args,
  onFailure: (thrown: unknown) => void,
): void {
  try {
    const result = listener(...args);
    // Nobody awaits it, so that its rejection would end the process.
    if (result instanceof Promise) result.catch(onFailure);
  } catch (thrown) {
    onFailure(thrown);
  }
}
