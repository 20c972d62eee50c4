import type { Style } from './terminal.js';

/** What a command gives: data for `--json`, and how people see it. Actions return it and print nothing themselves. */
export interface Result<Data = unknown> {
  readonly data: Data;
  readonly text: (style: Style) => string;
  /** 0 unless given: for answers that are no failure, and yet no yes. */
  readonly exitCode?: number;
}
