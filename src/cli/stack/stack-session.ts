import type { StackNames } from '../../infra/stack/stack-name.js';
import type { StackTools, Watcher } from '../../infra/stack/stack-tools.js';
import type { Result } from '../run/result.js';
import type { Style } from '../terminal/terminal.js';

/** The environment of an action on a stack. */
export interface StackSession {
  readonly tools: StackTools;
  readonly watcher: Watcher;
  readonly names: StackNames;
  /** The version of this package. */
  readonly version: string;
  /**
   * Resolves if the user confirms, else throws. `change` completes "This ...". `unchanged`: what a refusal leaves as it
   * was, by default everything.
   */
  confirm(change: string, unchanged?: string): Promise<void>;
  /** Resolves if the user types `name`, else throws. */
  confirmByName(change: string, name: string): Promise<void>;
  /** Prints text on standard error before the result, but not with `--json`. */
  show(text: string): void;
  readonly style: Style;
  /** Shows the progress on one line, only at a terminal. */
  progress(text: string): void;
}

/** The options of every command on a stack. */
export interface StackOptions {
  readonly env?: string;
  readonly table?: string;
  readonly region?: string;
  readonly endpoint?: string;
}

export type StackAction<O = object> = (session: StackSession, options: O) => Promise<Result>;
