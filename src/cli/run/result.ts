import type { Style } from '../terminal/terminal.js';

/** The result of an action: data for `--json`, and text for people. The action itself prints nothing. */
export interface Result<Data = unknown> {
  readonly data: Data;
  readonly text: (style: Style) => string;
  /** By default 0. For an answer such as a denial, which is neither a failure nor a success. */
  readonly exitCode?: number;
}
