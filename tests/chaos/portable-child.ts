/** A process that continues portable leases by their tokens until it is killed. It tells the outcome of each step. */
import type { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { type Outcome, perform, type Step } from '../support/features/portable-model.js';
import { openLimiter, type PortableNews, type PortableOrder, type Reach } from '../support/features/portable-reach.js';

const limiter = await openLimiter(JSON.parse(process.argv[2] ?? '{}') as Reach);
// The parent may end before it kills this process.
process.once('disconnect', () => process.exit());
process.on('message', (order) => void follow(order as PortableOrder));
tell({ kind: 'ready' });

function tell(news: PortableNews): void {
  process.send?.(news, () => {});
}

async function follow({ leases }: PortableOrder): Promise<void> {
  try {
    await Promise.all(
      leases.map(async ({ number, token, steps }) => {
        for (const step of steps) tell({ kind: 'made', lease: number, outcome: await make(limiter, token, step) });
      }),
    );
  } catch (error) {
    tell({ kind: 'failed', message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}

/** A step whose outcome is not known is repeated. */
async function make(from: RateLimiter, token: string, step: Step): Promise<Outcome> {
  for (;;) {
    const outcome = await perform(await from.leases.resume(token), step);
    if (outcome !== 'killed') return outcome;
  }
}
