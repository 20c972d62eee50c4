import { addVerb, type CommandContext, onStore } from '../define-command.js';

export function addReconcileCommand(context: CommandContext): void {
  addVerb(context.program, {
    usage: 'reconcile',
    summary: 'Take back what expired leases hold, heal slots and merge idle shards, in every namespace',
    examples: [
      'reconcile --store dynamodb://headgate-prod',
      'reconcile --watch --every 5min --store dynamodb://headgate-prod',
    ],
  })
    .option('--watch', 'again and again, until it is interrupted')
    .option('--every <duration>', 'with --watch: the pause between two sweeps, 5min unless given')
    .action(
      onStore(context, async () => {
        const { reconcileStore } = await import('../actions/reconcile.js');
        return reconcileStore(context.terminal);
      }),
    );
}
