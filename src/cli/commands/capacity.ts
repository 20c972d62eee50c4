import { addVerb, type CommandContext, onStore } from '../define-command.js';

export function addCapacityCommand(context: CommandContext): void {
  addVerb(context.program, {
    usage: 'capacity <resource>',
    summary: 'Add up what a resource could give and can give now, over all entities',
    examples: ['capacity gpt-4'],
  }).action(onStore(context, async () => (await import('../actions/capacity.js')).showCapacity));
}
