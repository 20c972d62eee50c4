import type { RateLimiter } from '../../limiter/rate-limiter.js';

/** The environment of an action on a store. */
export interface Session {
  readonly limiter: RateLimiter;
  /** The address of the store, as the user gave it. */
  readonly address: string;
  readonly namespace: string;
  /** Resolves if the user confirms (`--yes`, or an answer at the terminal), else throws. `change` completes "This ...". */
  confirm(change: string): Promise<void>;
  /** Shows the progress of a long command: only at a terminal, and only after a second or `afterMs`. */
  progress(text: string, afterMs?: number): void;
  /** Prints a line on standard error at once. */
  say(text: string): void;
  /** Prints a line on standard error after the result, but not with `--json`. */
  note(text: string): void;
}
