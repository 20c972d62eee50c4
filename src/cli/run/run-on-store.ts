import { createConfirm } from './confirm.js';
import type { GlobalOptions } from './global-options.js';
import { openStore } from './open-store.js';
import { printResult } from './print-result.js';
import { createProgress } from '../terminal/progress.js';
import type { Result } from './result.js';
import type { Session } from './session.js';
import type { Terminal } from '../terminal/terminal.js';

/** Opens the store that the options name, runs the action, closes the store, and prints the result. */
export async function runOnStore(
  terminal: Terminal,
  options: GlobalOptions,
  action: (session: Session) => Promise<Result>,
): Promise<void> {
  printResult(terminal, options, await useStore(terminal, options, action));
}

/** Opens the store, runs the action and closes the store. Prints no result. */
export async function useStore<T>(
  terminal: Terminal,
  options: GlobalOptions,
  action: (session: Session) => Promise<T>,
): Promise<T> {
  const { note } = terminal;
  const { limiter, address, namespace } = openStore(options, terminal.env, note);
  const progress = createProgress(terminal);
  try {
    const ask = createConfirm(terminal, options);
    const confirm = async (change: string): Promise<void> => {
      // The question must start on a new line.
      progress.clear();
      await ask(change);
    };
    const say = (text: string): void => {
      progress.clear();
      terminal.err(`headgate: ${text}\n`);
    };
    return await action({ limiter, address, namespace, confirm, progress: progress.show, say, note });
  } finally {
    progress.clear();
    // `acquire --hold` leaves a lease that must outlive the command.
    await limiter.close({ leases: 'keep' });
  }
}
