/** A process that takes slots and, if told so, never gives them back: it waits to be killed. Otherwise it just ends. */
import { createDynamoDBBackend } from '../../../src/backends/dynamodb/dynamodb.js';
import { Limit } from '../../../src/core/limit.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';

export interface HolderOrder {
  readonly table: string;
  readonly region: string;
  readonly endpoint: string;
  readonly slots: number;
  /** How many it takes. */
  readonly takes: number;
  /** Of how many buckets it takes them in turn: `shared-0` and so on; of the one `shared` unless given. */
  readonly buckets?: number;
  readonly waits: boolean;
}

export interface HolderNews {
  readonly leaseIds: readonly string[];
}

const order = JSON.parse(process.argv[2] ?? '{}') as HolderOrder;
const limiter = await RateLimiter.open(createDynamoDBBackend(order, {}), {
  limits: [Limit.concurrent('slots', order.slots)],
  timeouts: { callMs: 30_000, acquireMs: 30_000 },
});
const leaseIds: string[] = [];
const take = async (at: number): Promise<void> => {
  const entityId = order.buckets === undefined ? 'shared' : `shared-${at % order.buckets}`;
  const lease = await limiter.acquire({ entityId, resource: 'batch', consume: { slots: 1 } });
  // With a listener, a timer watches for the loss of the lease.
  lease.signal.addEventListener('abort', () => {});
  leaseIds.push(lease.id);
};
for (let taken = 0; taken < order.takes;) {
  // One after the other, or one of each bucket at once.
  const most = Math.min(order.takes - taken, order.buckets ?? 1);
  await Promise.all(Array.from({ length: most }, async (_, at) => take(taken + at)));
  taken += most;
}
process.once('SIGTERM', () => void limiter.close().then(() => process.exit()));
process.send?.({ leaseIds } satisfies HolderNews);
// The parent may end before it kills this process.
if (order.waits) process.once('disconnect', () => process.exit());
else process.disconnect();
