import type { Backend, Tuning } from '../backend.js';
import type { Clock } from '../clock.js';
import type { ResolvedOptions } from './options.js';
import type { Guard } from './outage/guard.js';

/** What outlives a namespace: one per opened store. */
export interface StoreContext {
  readonly backend: Backend;
  readonly guard: Guard;
  readonly clock: Required<Clock>;
  readonly random: () => number;
  readonly options: ResolvedOptions;
  /** Of the options, what a store needs to know. */
  readonly tuning: Tuning;
}

/** Tells `onError`, which must not be able to break what reports to it. */
export function report(options: ResolvedOptions, error: unknown, where: string): void {
  try {
    options.onError(error, where);
  } catch (thrown) {
    process.emitWarning(`onError threw: ${String(thrown)}`, 'HeadgateWarning');
  }
}
