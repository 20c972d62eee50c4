import type { Command } from 'commander';
import type { LocalAction } from '../actions/local.js';
import { addNoun, addVerb, type CommandContext } from '../define-command.js';
import type { GlobalOptions } from '../global-options.js';

const load = () => import('../actions/local.js');

export function addLocalCommands(context: CommandContext): void {
  const local = addNoun(context.program, 'local', 'A table on this machine, for development: DynamoDB without AWS', [
    'local up --seed limits.yaml',
    'local down',
  ]);
  addVerb(local, {
    usage: 'up',
    summary: 'Start DynamoDB in the background, with a table, and say its address; what runs already stays',
    examples: ['local up', 'local up --seed limits.yaml', 'local up --port 8000 --data ./limits-data.db'],
  })
    .option('--seed <file>', 'a limits file to apply, as `limits apply` does; its namespace is created')
    .option('--port <number>', 'the port on 127.0.0.1: that of the last time, else 8000, else a free one')
    .option('--data <file>', 'where the data is kept (of DynamoDB Local: a folder)')
    .action(onMachine(context, async () => (await load()).up));
  addVerb(local, {
    usage: 'down',
    summary: 'Stop what `local up` started; its data stays',
    examples: ['local down', 'local down --purge --yes'],
  })
    .option('--purge', 'delete the data, too')
    .action(onMachine(context, async () => (await load()).down));
  addVerb(local, {
    usage: 'status',
    summary: 'Say whether it runs, and its address',
    examples: ['local status', 'local status --json'],
  }).action(onMachine(context, async () => (await load()).status));
}

function onMachine<O>({ terminal }: CommandContext, loadAction: () => Promise<LocalAction<O>>) {
  return async (...called: unknown[]): Promise<void> => {
    const options = (called.at(-1) as Command).optsWithGlobals<GlobalOptions & O>();
    const [{ printResult }, action] = await Promise.all([import('../print-result.js'), loadAction()]);
    printResult(terminal, options, await action(terminal, options));
  };
}
