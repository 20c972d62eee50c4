/**
 * A process that takes every slot it can get, and keeps a lease while the store has its holder. After `stop` it takes
 * no more. After `count` it reports how many of its leases the store still has.
 */
import { file } from '../../src/backends/embedded/file/file.js';
import { Limit } from '../../src/core/limit.js';
import type { Lease } from '../../src/limiter/lease/lease.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';

export interface HolderOrder {
  readonly path: string;
  readonly slots: number;
}

export type HolderCommand = 'take' | 'stop' | 'count';

/** The pause between two asks. */
const PAUSE_MS = 5;

const order = JSON.parse(process.argv[2] ?? '{}') as HolderOrder;
const limiter = await RateLimiter.open(file({ path: order.path }), {
  limits: [Limit.concurrent('slots', order.slots)],
  leaseTtlMs: 600_000,
  onError: () => {},
});
let leases: readonly Lease[] = [];
let takes = true;

process.on('message', (command: HolderCommand) => {
  if (command !== 'count') takes = command === 'take';
  void settled().then(() => process.send?.(leases.length));
});
process.on('disconnect', () => process.exit(0));
process.send?.(0);

let turn = Promise.resolve();
while (process.connected) {
  if (takes) {
    turn = takeOne();
    await turn;
  }
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
}

async function takeOne(): Promise<void> {
  // Rejects during the outage that lasts until this process notices that the file was replaced.
  const decision = await limiter
    .tryAcquire({ entityId: 'pot', resource: 'gpu', consume: { slots: 1 } })
    .catch(() => null);
  if (decision?.granted === true) leases = [...leases, decision.lease];
}

/** Drops leases that the store no longer has. */
async function settled(): Promise<void> {
  await turn;
  const known: Lease[] = [];
  for (const lease of leases) {
    await lease.extend().then(
      () => known.push(lease),
      () => {},
    );
  }
  leases = known;
}
