import { addNoun, addPaging, addVerb, type CommandContext, onStore } from '../define-command.js';

const load = () => import('../actions/bucket.js');

export function addBucketCommands(context: CommandContext): void {
  const bucket = addNoun(context.program, 'bucket', 'What is left of the limits of an entity on a resource', [
    'bucket show user-1 gpt-4',
  ]);
  addVerb(bucket, {
    usage: 'show <entity> <resource>',
    summary: 'Show a bucket',
    examples: ['bucket show user-1 gpt-4'],
  }).action(onStore(context, async () => (await load()).showBucket));
  addPaging(
    addVerb(bucket, {
      usage: 'list',
      summary: 'List the buckets of an entity, or of a resource',
      examples: ['bucket list --entity user-1', 'bucket list --resource gpt-4 --all'],
    }),
  )
    .option('--entity <entity>', 'those of this entity')
    .option('--resource <resource>', 'those of this resource')
    .action(onStore(context, async () => (await load()).listBuckets));
  addVerb(bucket, {
    usage: 'reset <entity> <resource>',
    summary: 'Fill a bucket, and take back all slots that are held',
    examples: ['bucket reset user-1 gpt-4 --yes'],
  }).action(onStore(context, async () => (await load()).resetBucket));
}
