import type { StackEvent } from '../../infra/stack/stack-tools.js';
import { sdkStackTools } from '../../infra/stack/aws/sdk-stack-tools.js';
import { chooseNames } from '../../infra/stack/stack-name.js';
import { createConfirm, createConfirmByName } from '../run/confirm.js';
import type { GlobalOptions } from '../run/global-options.js';
import { printResult } from '../run/print-result.js';
import { createProgress } from '../terminal/progress.js';
import type { Result } from '../run/result.js';
import type { StackOptions, StackSession } from './stack-session.js';
import type { Style, Terminal } from '../terminal/terminal.js';

/** Runs an action on the stack that the options name, and prints its result. */
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
      // The question must start on a new line.
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

function renderEvent({ at, status, logicalId, type, reason }: StackEvent, style: Style): string {
  const time = at.toISOString().slice(11, 19);
  const paint = status.includes('FAILED') || status.includes('ROLLBACK') ? style.red : (text: string) => text;
  return `${time}  ${paint(status)}  ${logicalId} (${type})${reason === null ? '' : `: ${reason}`}`;
}
