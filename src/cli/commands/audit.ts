import { addNoun, addPaging, addVerb, type CommandContext, onStore } from '../define-command.js';

export function addAuditCommands(context: CommandContext): void {
  const audit = addNoun(context.program, 'audit', 'Who changed what, and when', ['audit list --last 20']);
  addPaging(
    addVerb(audit, {
      usage: 'list [entity]',
      summary: 'List changes in the order of time: of an entity and its limits, or of everything',
      examples: ['audit list --last 20', 'audit list user-1', 'audit list --resource gpt-4', 'audit list --system'],
    }),
  )
    .option('--system', 'only changes of the limits of the system')
    .option('--resource <resource>', 'only changes of the limits of a resource')
    .option('--namespace-registry <name>', 'what was done to a namespace itself: created, deleted, recovered, purged')
    .option('--last <count>', 'the newest ones')
    .action(onStore(context, async () => (await import('../actions/audit.js')).listAudit));
}
