import { createConfirm } from './confirm.js';
import type { GlobalOptions } from './global-options.js';
import { openStore } from './open-store.js';
import { printResult } from './print-result.js';
import { createProgress } from './progress.js';
import type { Result } from './result.js';
import type { Session } from './session.js';
import type { Terminal } from './terminal.js';

/** Opens the store that the options name, runs the action, closes the store, prints. */
export async function runOnStore(
  terminal: Terminal,
  options: GlobalOptions,
  action: (session: Session) => Promise<Result>,
): Promise<void> {
  printResult(terminal, options, await useStore(terminal, options, action));
}

/** The same, for an action that is a part of a command: nothing is printed. */
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
      // A question stands on a line of its own.
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
    // `acquire` may leave a lease that is to outlive the command.
    await limiter.close({ leases: 'keep' });
  }
}
