import { addVerb, collect, type CommandContext, onStore } from '../define-command.js';

export function addMigrateCommand(context: CommandContext): void {
  addVerb(context.program, {
    usage: 'migrate',
    summary: 'Bring a table of an older layout to this one: copy, verify, remove; continues where it was stopped',
    examples: ['migrate --dry-run --store dynamodb://headgate-prod', 'migrate --yes --store dynamodb://headgate-prod'],
  })
    .option('--dry-run', 'read only, and say what there is to do')
    .option('--leave', 'convert the rest where some records have no counterpart: those stay, and are reported')
    .option('--drop <setting>', 'give up a setting that has no counterpart, such as soft; can be repeated', collect)
    .action(onStore(context, async () => (await import('../actions/migrate.js')).migrate));
}
