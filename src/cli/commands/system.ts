import { Option } from 'commander';
import { ON_UNAVAILABLE } from '../../core/config/config.js';
import { addNoun, addVerb, collect, type CommandContext, onStore } from '../define-command.js';

const load = () => import('../actions/system.js');

export function addSystemCommands(context: CommandContext): void {
  const system = addNoun(
    context.program,
    'system',
    'The limits of everybody on everything, where nothing else is set',
    ['system set -l rpm:100/min'],
  );
  addVerb(system, {
    usage: 'show',
    summary: 'Show the limits of the system',
    examples: ['system show'],
  }).action(onStore(context, async () => (await load()).showSystem));
  addVerb(system, {
    usage: 'set',
    summary: 'Set the limits of the system, or what happens while the store is out; what is not named stays',
    examples: ['system set -l rpm:100/min -l tpm:10000/min:50000', 'system set --on-unavailable local'],
  })
    .option('-l, --limits <limit>', 'a limit such as rpm:60/min; can be repeated', collect)
    .option('--replace', 'set the whole list: limits that are not named go, after a question')
    .addOption(
      new Option('--on-unavailable <policy>', 'what an acquire does while the store is out').choices(ON_UNAVAILABLE),
    )
    .action(onStore(context, async () => (await load()).setSystem));
  addVerb(system, {
    usage: 'delete',
    summary: 'Delete the limits of the system, and its policy for outages',
    examples: ['system delete --yes'],
  }).action(onStore(context, async () => (await load()).deleteSystem));
}
