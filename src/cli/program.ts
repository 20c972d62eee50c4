import { Command } from 'commander';
import { addAcquireCommand } from './commands/acquire.js';
import { addAuditCommands } from './commands/audit.js';
import { addBucketCommands } from './commands/bucket.js';
import { addCapacityCommand } from './commands/capacity.js';
import { addCheckCommand } from './commands/check.js';
import { addCompletionCommand } from './commands/completion.js';
import { addConfigCommands } from './commands/config.js';
import { addEntityCommands } from './commands/entity.js';
import { addLeasesCommands } from './commands/leases.js';
import { addLimitsCommands } from './commands/limits.js';
import { addLocalCommands } from './commands/local.js';
import { addMigrateCommand } from './commands/migrate.js';
import { addNamespaceCommands } from './commands/namespace.js';
import { addReconcileCommand } from './commands/reconcile.js';
import { addResourceCommands } from './commands/resource.js';
import { addStackCommands } from './commands/stack.js';
import { addSystemCommands } from './commands/system.js';
import { addTemplateCommand } from './commands/template.js';
import { addTourCommand } from './commands/tour.js';
import { addUsageCommands } from './commands/usage.js';
import { addVersionCommand } from './commands/version.js';
import { addWorkerCommand } from './commands/worker.js';
import { describeGlobalOptions } from './global-options.js';
import { addExamples, type CommandContext } from './define-command.js';
import type { Terminal } from './terminal.js';

/** Everything that can be typed. Loads no action: each is imported when it is called. */
export function createProgram(terminal: Terminal, version: string): Command {
  const program = new Command('headgate')
    .description('Rate limits, token limits and concurrency slots that many processes share.')
    .version(version, '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show this help')
    .configureHelp({ showGlobalOptions: true, subcommandTerm })
    // Errors are printed in one place, by main; what is left for commander to write is help.
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
  const context: CommandContext = { program, terminal, version };
  // The order of the help, which is also that of the groups.
  program.commandsGroup('Look and try:');
  addAcquireCommand(context);
  addConfigCommands(context);
  addBucketCommands(context);
  addLeasesCommands(context);
  addCapacityCommand(context);
  addUsageCommands(context);
  addAuditCommands(context);
  addCheckCommand(context);
  program.commandsGroup('Set limits, from the weakest level to the strongest:');
  addSystemCommands(context);
  addResourceCommands(context);
  addEntityCommands(context);
  addLimitsCommands(context);
  program.commandsGroup('Tenants:');
  addNamespaceCommands(context);
  program.commandsGroup('Keep a table of DynamoDB in order:');
  addWorkerCommand(context);
  addReconcileCommand(context);
  addMigrateCommand(context);
  program.commandsGroup('Try it on this machine:');
  addLocalCommands(context);
  program.commandsGroup('Deploy to AWS:');
  addStackCommands(context);
  addTemplateCommand(context);
  program.commandsGroup('About this program:');
  addCompletionCommand(context);
  addTourCommand(context);
  addVersionCommand(context);
  program.helpCommand('help [command]', 'show the help of a command');
  return program;
}

/** The name and the arguments; options stand in the command's own help. */
function subcommandTerm(command: Command): string {
  return [
    command.name(),
    ...command.registeredArguments.map((argument) =>
      argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
    ),
  ].join(' ');
}
