import type { RateLimiter } from '../limiter/rate-limiter.js';

/** What an action works with. */
export interface Session {
  readonly limiter: RateLimiter;
  /** The store as it was named. */
  readonly address: string;
  readonly namespace: string;
  /** Resolves if the user agrees (`--yes`, or an answer at the terminal); throws, with one clear line, if not. `change` completes "This ...". */
  confirm(change: string): Promise<void>;
  /** Shows how far a long command is: only where somebody watches, and only after a second or `afterMs`. */
  progress(text: string, afterMs?: number): void;
  /** A line for people, at once: on standard error. */
  say(text: string): void;
  /** A line for people, after the result: on standard error, never with `--json`. */
  note(text: string): void;
}
