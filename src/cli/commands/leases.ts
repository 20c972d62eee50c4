import { addNoun, addPaging, addVerb, type CommandContext, onStore } from '../define-command.js';

export function addLeasesCommands(context: CommandContext): void {
  const leases = addNoun(context.program, 'leases', 'Who holds slots now', ['leases list user-1 gpt-4']);
  addPaging(
    addVerb(leases, {
      usage: 'list <entity> <resource>',
      summary: 'List the leases that a bucket keeps a holder for',
      examples: ['leases list user-1 gpt-4'],
    }),
  ).action(onStore(context, async () => (await import('../actions/leases.js')).listLeases));
}
