import { Command } from 'commander';
import { addCheckCommand } from './commands/check.js';
import { addTourCommand } from './commands/tour.js';
import { addVersionCommand } from './commands/version.js';
import { describeGlobalOptions } from './global-options.js';
import type { CommandContext } from './define-command.js';
import type { Terminal } from './terminal.js';

/** Everything that can be typed. Loads no action: each is imported when it is called. */
export function createProgram(terminal: Terminal, version: string): Command {
  const program = new Command('headgate')
    .description('Rate limits, token limits and concurrency slots that many processes share.')
    .version(version, '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show this help')
    .helpCommand('help [command]', 'show the help of a command')
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    // Errors are printed in one place, by main; what is left for commander to write is help.
    .configureOutput({
      writeOut: (text) => terminal.out(text),
      writeErr: (text) => terminal.out(text),
      outputError: () => {},
    })
    .exitOverride();
  describeGlobalOptions(program);
  const context: CommandContext = { program, terminal, version };
  addCheckCommand(context);
  addVersionCommand(context);
  addTourCommand(context);
  return program;
}
