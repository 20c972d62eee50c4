import { addVerb, collect, type CommandContext, onStore } from '../define-command.js';

export function addAcquireCommand(context: CommandContext): void {
  addVerb(context.program, {
    usage: 'acquire <entity> <resource>',
    summary: 'Try one request, and explain the decision level by level',
    examples: [
      'acquire user-1 gpt-4 -c rpm=1 -c tpm=500',
      'acquire user-1 gpt-4 -c rpm=1 --dry-run',
      'acquire user-1 gpt-4 -c slots=1 --hold --lease-ttl 5min',
      'acquire user-1 gpt-4 -c rpm=1 -l rpm:5/min',
    ],
  })
    .option('-c, --consume <limit=amount>', 'how much to take of a limit; can be repeated', collect)
    .option('-l, --limits <limit>', 'this limit instead of the stored ones, for this call; can be repeated', collect)
    .option('--lease-ttl <duration>', 'when the lease expires by itself: 5s to 7day, 1min unless given')
    .option('--hold', 'keep what was taken until the lease expires, instead of giving slots back at once')
    .option('--dry-run', 'only look: take nothing')
    .action(onStore(context, async () => (await import('../actions/acquire.js')).acquire));
}
