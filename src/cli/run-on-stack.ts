import { sdkStackTools } from '../infra/stack/sdk-stack-tools.js';
import { chooseNames } from '../infra/stack/stack-name.js';
import { createConfirm, createConfirmByName } from './confirm.js';
import type { GlobalOptions } from './global-options.js';
import { printResult } from './print-result.js';
import { createProgress } from './progress.js';
import { renderEvent } from './render/stack.js';
import type { Result } from './result.js';
import type { StackOptions, StackSession } from './stack-session.js';
import type { Terminal } from './terminal.js';

/** Runs an action on the stack that the options name, and prints what it gives. */
export async function runOnStack(
  terminal: Terminal,
  version: string,
  options: GlobalOptions & StackOptions,
  action: (session: StackSession) => Promise<Result>,
): Promise<void> {
  const names = chooseNames(options);
  const { region, endpoint } = options;
  const tools = sdkStackTools({
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
  });
  const progress = createProgress(terminal);
  const show = (text: string): void => {
    progress.clear();
    if (options.json !== true) terminal.err(`${text}\n`);
  };
  const asking =
    <Args extends readonly unknown[]>(ask: (...args: Args) => Promise<void>) =>
    async (...args: Args): Promise<void> => {
      // A question stands on a line of its own.
      progress.clear();
      await ask(...args);
    };
  let result: Result;
  try {
    result = await action({
      tools,
      names,
      version,
      watcher: {
        onEvent: (event) => show(renderEvent(event, terminal.style)),
        onStep: (text) => progress.show(text, 0),
      },
      confirm: asking(createConfirm(terminal, options)),
      confirmByName: asking(createConfirmByName(terminal, options)),
      show,
      style: terminal.style,
      progress: (text) => progress.show(text, 0),
    });
  } finally {
    progress.clear();
    tools.close();
  }
  printResult(terminal, options, result);
}
