import type { Command } from 'commander';
import { addVerb, collect, type CommandContext, onStack } from '../define-command.js';

export function addStackCommands(context: CommandContext): void {
  addDeploy(context);
  addNames(
    addVerb(context.program, {
      usage: 'status',
      summary: 'Show a stack: its state, its table, its functions, why it failed last',
      examples: ['status', 'status --env pre --region eu-west-1'],
    }),
  ).action(onStack(context, async () => (await import('../actions/inspect-stack.js')).showStack));
  addPlace(
    addVerb(context.program, {
      usage: 'list',
      summary: "List Headgate's stacks in the region",
      examples: ['list', 'list --region eu-west-1 --json'],
    }),
  ).action(onStack(context, async () => (await import('../actions/inspect-stack.js')).listStacksAction));
  addUpgrade(context);
  addNames(
    addVerb(context.program, {
      usage: 'delete',
      summary: 'Delete a stack; its table and its archive stay',
      examples: ['delete --env pre', 'delete --env pre --dry-run'],
    }),
  )
    .option('--dry-run', 'say what would stay, and delete nothing')
    .action(onStack(context, async () => (await import('../actions/delete-stack.js')).deleteStackAction));
}

function addDeploy(context: CommandContext): void {
  addChanges(
    addVerb(context.program, {
      usage: 'deploy',
      summary: 'Create or update the stack of an environment: table, functions, alarms, policies',
      examples: [
        'deploy --env pre',
        'deploy --env prod --param AlarmEmail=ops@example.com',
        'deploy --env prod --dry-run',
        'deploy --table limits --adopt',
      ],
    }),
  )
    .option('--adopt', 'put a table that exists under the stack: one of createTable, of migrate, of a deleted stack')
    .action(onStack(context, async () => (await import('../actions/deploy-stack.js')).deploy));
}

function addUpgrade(context: CommandContext): void {
  addChanges(
    addVerb(context.program, {
      usage: 'upgrade',
      summary: 'Bring a stack to this version: its template, then the data in its table, then the code',
      examples: ['upgrade --env pre --dry-run', 'upgrade --env pre'],
    }),
  ).action(onStack(context, async () => (await import('../actions/upgrade-stack.js')).upgrade));
}

function addChanges(command: Command): Command {
  return addNames(command)
    .option('--param <name=value>', 'a parameter of the template; those not named keep their values', collect)
    .option('--allow-replacement', 'let a table or an archive be replaced or removed')
    .option('--dry-run', 'show what would change, and change nothing');
}

function addNames(command: Command): Command {
  return addPlace(
    command
      .option('--env <name>', 'the environment: stack and table are called headgate-NAME, without it headgate')
      .option('--table <name>', 'another name for the table, and the stack'),
  );
}

function addPlace(command: Command): Command {
  return command
    .option('--region <name>', 'the region (AWS_REGION, else that of the profile)')
    .option('--endpoint <url>', 'another endpoint than that of AWS, such as of LocalStack (AWS_ENDPOINT_URL)');
}
