import { type Command, Option } from 'commander';
import { USAGE_WINDOWS } from '../../core/usage/usage.js';
import { addNoun, addPaging, addVerb, type CommandContext, onStore } from '../define-command.js';

const load = () => import('../actions/usage.js');

export function addUsageCommands(context: CommandContext): void {
  const usage = addNoun(context.program, 'usage', 'What was consumed of a resource, by hour, day and month (UTC)', [
    'usage plot gpt-4 --from 12hour',
  ]);
  const list = addVerb(usage, {
    usage: 'list <resource>',
    summary: 'List usage by entity and window',
    examples: ['usage list gpt-4 --window daily --from 2027-01-01 --to 2027-02-01', 'usage list gpt-4 --entity user-1'],
  });
  addPaging(addRange(list)).action(onStore(context, async () => (await load()).listUsage));
  const summary = addVerb(usage, {
    usage: 'summary <resource>',
    summary: 'Add usage up over a time',
    examples: ['usage summary gpt-4 --window daily --from 30day', 'usage summary gpt-4 --entity user-1'],
  });
  addRange(summary).action(onStore(context, async () => (await load()).summarizeUsage));
  const plot = addVerb(usage, {
    usage: 'plot <resource>',
    summary: 'Draw usage over time',
    examples: ['usage plot gpt-4', 'usage plot gpt-4 --entity user-1 --window daily --from 30day --only tpm --table'],
  });
  addRange(plot)
    .option('--only <limit>', 'only this limit (or "acquires"); without: all of them')
    .option('--table', 'a table instead of bars')
    .action(onStore(context, async () => (await load()).plotUsage));
  addVerb(usage, {
    usage: 'rebuild <entity> <resource>',
    summary: 'Add what the change stream lost to the usage of now (DynamoDB)',
    examples: ['usage rebuild user-1 gpt-4 --store dynamodb://limits'],
  }).action(onStore(context, async () => (await import('../actions/rebuild.js')).rebuild));
}

function addRange(command: Command): Command {
  return command
    .option('--entity <entity>', 'only this entity; without: all of them, parents and children alike')
    .addOption(new Option('--window <window>', 'the length of a window').choices(USAGE_WINDOWS).default('hourly'))
    .option('--from <time>', 'windows that begin at or after it: 2027-01-31, 2027-01-31T10:00 (UTC), or 6hour ago')
    .option('--to <time>', 'windows that begin before it');
}
