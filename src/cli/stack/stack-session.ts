import type { StackNames } from '../../infra/stack/stack-name.js';
import type { StackTools, Watcher } from '../../infra/stack/stack-tools.js';
import type { Result } from '../result.js';
import type { Style } from '../terminal.js';

/** What an action on a stack works with. */
export interface StackSession {
  readonly tools: StackTools;
  readonly watcher: Watcher;
  readonly names: StackNames;
  /** Of this package. */
  readonly version: string;
  /** Resolves if the user agrees; throws, with one clear line, if not. `change` completes "This ...". */
  confirm(change: string): Promise<void>;
  /** The same, by typing `name`. */
  confirmByName(change: string, name: string): Promise<void>;
  /** Text for people that comes before the result: on standard error, never with `--json`. */
  show(text: string): void;
  readonly style: Style;
  /** A line that replaces itself, where somebody watches. */
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
