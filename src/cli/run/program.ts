import { Command } from 'commander';
import { COMMAND_GROUPS, type ListedCommand } from '../command-list.js';
import { addCommand, addExamples, type CommandContext } from './define-command.js';
import { describeGlobalOptions } from './global-options.js';
import type { Terminal } from '../terminal/terminal.js';

/** The program with the names of all commands. Running one, or its help, loads that one's file. */
export function createProgram(terminal: Terminal, version: string): Command {
  return describeProgram(terminal, version).program;
}

/** The program with every command defined. */
export async function createWholeProgram(terminal: Terminal, version: string): Promise<Command> {
  const { program, defineCommand } = describeProgram(terminal, version);
  for (const command of program.commands) await defineCommand(command);
  return program;
}

function describeProgram(terminal: Terminal, version: string) {
  const program = new Command('headgate')
    .description('Rate limits, token limits and concurrency slots that many processes share.')
    .version(version, '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show this help')
    .configureHelp({ showGlobalOptions: true, subcommandTerm })
    // `runCli` prints errors. Commander writes only help.
    .configureOutput({
      writeOut: (text) => terminal.out(text),
      writeErr: (text) => terminal.out(text),
      outputError: () => {},
    })
    .exitOverride();
  describeGlobalOptions(program);
  addExamples(program, [
    'tour',
    'system set -l rpm:100/min --store file:./limits.db',
    'acquire user-1 gpt-4 -c rpm=1 --store file:./limits.db',
  ]);
  const context: CommandContext = {
    terminal,
    version,
    createWholeProgram: () => createWholeProgram(terminal, version),
  };
  const loaders = new Map<Command, ListedCommand['load']>();
  for (const [title, commands] of Object.entries(COMMAND_GROUPS)) {
    program.commandsGroup(title);
    for (const { load, ...text } of commands) loaders.set(addCommand(program, text), load);
  }
  loaders.set(program.command('take <file>', { hidden: true }), () => import('../commands/about/take.js'));
  const defineCommand = async (command: Command): Promise<void> => {
    const load = loaders.get(command);
    loaders.delete(command);
    if (load !== undefined) (await load()).define(command, context);
  };
  addHelpCommand(program, defineCommand);
  program.hook('preSubcommand', (_, command) => defineCommand(command));
  return { program, defineCommand };
}

/** Commander's own `help` would show a command before its file is loaded. */
function addHelpCommand(program: Command, defineCommand: (command: Command) => Promise<void>): void {
  program
    .helpCommand(false)
    .command('help [command...]')
    .summary('show the help of a command')
    .action(async (names: readonly string[]) => {
      let shown = program;
      for (const name of names) {
        const next = shown.commands.find((command) => command.name() === name);
        if (next === undefined) return shown.error(`unknown command '${name}'`);
        await defineCommand(next);
        shown = next;
      }
      return shown.help();
    });
}

/** The name and the arguments. The options are in the help of the command. */
function subcommandTerm(command: Command): string {
  return [
    command.name(),
    ...command.registeredArguments.map((argument) =>
      argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
    ),
  ].join(' ');
}
