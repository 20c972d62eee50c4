/** A process that takes slots. If `waits` is set, it keeps them until it is killed. Otherwise it exits. */
import { createDynamoDBBackend } from '../../../src/backends/dynamodb/dynamodb.js';
import { Limit } from '../../../src/core/limit.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';

export interface HolderOrder {
  readonly table: string;
  readonly region: string;
  readonly endpoint: string;
  readonly slots: number;
  /** The number of slots to take. */
  readonly takes: number;
  /** The number of buckets to take from in turn, `shared-0` and so on. Without it, the only bucket is `shared`. */
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
  // With a listener, a timer checks for the expiry of the lease.
  lease.signal.addEventListener('abort', () => {});
  leaseIds.push(lease.id);
};
for (let taken = 0; taken < order.takes;) {
  // One after the other, or one of each bucket concurrently.
  const most = Math.min(order.takes - taken, order.buckets ?? 1);
  await Promise.all(Array.from({ length: most }, async (_, at) => take(taken + at)));
  taken += most;
}
process.once('SIGTERM', () => void limiter.close().then(() => process.exit()));
process.send?.({ leaseIds } satisfies HolderNews);
// The parent may end before it kills this process.
if (order.waits) process.once('disconnect', () => process.exit());
else process.disconnect();
