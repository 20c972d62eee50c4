import { HeadgateError } from '../core/errors.js';
import type { GlobalOptions } from './global-options.js';
import type { Terminal } from './terminal.js';

/** Asks before something is lost. `change` completes "This ...": `deletes entity user-1`. */
export function createConfirm(terminal: Terminal, { yes }: GlobalOptions): (change: string) => Promise<void> {
  return async (change) => {
    if (yes === true) return;
    if (!terminal.canAsk) {
      throw new HeadgateError('input.invalid', `This ${change}: without a terminal to ask on, it needs --yes`);
    }
    const { confirm } = await import('@clack/prompts');
    // On standard error, so that standard output holds the result alone.
    const answer = await confirm({ message: `This ${change}. Go on?`, initialValue: false, output: process.stderr });
    if (answer !== true) throw new HeadgateError('input.invalid', 'Not confirmed: nothing was changed');
  };
}
