import type { GlobalOptions } from './global-options.js';
import type { Result } from './result.js';
import type { Terminal } from '../terminal/terminal.js';

/** Prints the result of an action, and sets the exit code. */
export function printResult(terminal: Terminal, { json }: GlobalOptions, { data, text, exitCode }: Result): void {
  const printed = json === true ? printJson(data) : text(terminal.style);
  if (printed !== '') terminal.out(`${printed}\n`);
  if (json !== true) for (const note of terminal.notes) terminal.err(`headgate: ${note}\n`);
  terminal.exitCode = exitCode ?? 0;
}

/** `undefined`: the action has printed its data itself. */
function printJson(data: unknown): string {
  return data === undefined ? '' : JSON.stringify(data, null, 2);
}
