import { addVerb, type CommandContext, onStore } from '../define-command.js';

export function addCheckCommand(context: CommandContext): void {
  addVerb(context.program, {
    usage: 'check',
    summary: 'Ask whether the store answers, and whether the namespace is there',
    examples: ['check --store file:./limits.db', 'check --namespace acme --json'],
  }).action(onStore(context, async () => (await import('../actions/check.js')).check));
}
