import type { Command } from 'commander';
import { appendValue } from '../run/define-command.js';

/** Adds the options of commands that change a stack by its template. */
export function addChangeOptions(command: Command): Command {
  return addNameOptions(command)
    .option(
      '--param <name=value>',
      'a parameter of the template; can be repeated; the others keep their values',
      appendValue,
    )
    .option('--allow-replacement', 'allow that a table or an archive is replaced or removed')
    .option('--dry-run', 'show what would change, and change nothing');
}

/** Adds the options that name a stack. */
export function addNameOptions(command: Command): Command {
  return addRegionOptions(
    command
      .option('--env <name>', 'the environment: stack and table are called headgate-NAME, without it headgate')
      .option('--table <name>', 'another name for the table and the stack'),
  );
}

export function addRegionOptions(command: Command): Command {
  return command
    .option('--region <name>', 'the region (AWS_REGION, else that of the profile)')
    .option('--endpoint <url>', 'an endpoint other than AWS, for example LocalStack (AWS_ENDPOINT_URL)');
}
