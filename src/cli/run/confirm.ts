import { HeadgateError } from '../../core/errors.js';
import type { GlobalOptions } from './global-options.js';
import type { Terminal } from '../terminal/terminal.js';

type Question = (change: string, unchanged?: string) => Promise<void>;

/**
 * Asks for confirmation before data is lost. `change` completes "This ...": `deletes entity user-1`. `unchanged` is for a
 * question that comes after a first change.
 */
export function createConfirm(terminal: Terminal, { yes }: GlobalOptions): Question {
  return async (change, unchanged) => {
    if (yes === true) return;
    requireTerminal(terminal, change);
    const { confirm } = await import('@clack/prompts');
    // On standard error, because standard output has only the result.
    const answer = await confirm({ message: `This ${change}. Continue?`, initialValue: false, output: process.stderr });
    if (answer !== true) throw notConfirmed(unchanged);
  };
}

/** Asks the user to type the name of what is lost, where a hasty "y" must not be enough. */
export function createConfirmByName(
  terminal: Terminal,
  { yes }: GlobalOptions,
): (change: string, name: string) => Promise<void> {
  return async (change, name) => {
    if (yes === true) return;
    requireTerminal(terminal, change);
    const { text } = await import('@clack/prompts');
    const answer = await text({ message: `This ${change}. Type ${name} to continue:`, output: process.stderr });
    if (answer !== name) throw notConfirmed();
  };
}

function requireTerminal({ canAsk }: Terminal, change: string): void {
  if (canAsk) return;
  throw new HeadgateError('input.invalid', `This ${change}: without a terminal to ask on, it needs --yes`);
}

function notConfirmed(unchanged = 'nothing was changed'): HeadgateError {
  return new HeadgateError('input.invalid', `Not confirmed: ${unchanged}`);
}
