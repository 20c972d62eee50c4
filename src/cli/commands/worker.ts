import { addVerb, type CommandContext, onStore } from '../define-command.js';

export function addWorkerCommand(context: CommandContext): void {
  addVerb(context.program, {
    usage: 'worker',
    summary: 'Follow the change stream of a table: count usage, archive audit records, split busy buckets',
    examples: [
      'worker --store dynamodb://limits',
      'worker --store dynamodb://limits --archive s3://my-archive',
      'worker --store dynamodb://limits --archive ./archive --once',
    ],
  })
    .option('--archive <place>', 'where audit records go that expire: a folder or s3://bucket; without: nowhere')
    .option('--no-reconcile', 'do not take back slots of dead holders beside it')
    .option('--once', 'stop at the end of the stream instead of waiting for more')
    .action(onStore(context, async () => (await import('../actions/worker.js')).work));
}
