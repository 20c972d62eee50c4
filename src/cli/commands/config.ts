import { addNoun, addPaging, addVerb, type CommandContext, onStore } from '../define-command.js';

export function addConfigCommands(context: CommandContext): void {
  const config = addNoun(context.program, 'config', 'Which limits apply, and where they come from', [
    'config show --effective user-1 gpt-4',
  ]);
  addVerb(config, {
    usage: 'show <entity> <resource>',
    summary: 'Show what each level of configuration has for an entity and a resource',
    examples: ['config show user-1 gpt-4', 'config show --effective user-1 gpt-4'],
  })
    .option('--effective', 'also what an acquire is judged by: the level that wins, and the parents')
    .action(onStore(context, async () => (await import('../actions/config.js')).showConfig));
  addPaging(
    addVerb(config, {
      usage: 'list',
      summary: 'List every level that has limits',
      examples: ['config list', 'config list --all --json'],
    }),
  ).action(onStore(context, async () => (await import('../actions/config.js')).listConfigs));
}
