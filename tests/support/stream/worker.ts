/** A worker process for tests that kill it. */
import { runWorker } from '../../../src/backends/dynamodb/stream/worker/worker.js';

export interface WorkerOrder {
  readonly table: string;
  readonly region: string;
  readonly endpoint: string;
  readonly owner: string;
  readonly rollupMs: number;
}

const order = JSON.parse(process.argv[2] ?? '{}') as WorkerOrder;
// The parent may end before it kills this process.
process.once('disconnect', () => process.exit());
await runWorker({
  ...order,
  leaseMs: 1_000,
  pollMs: 10,
  discoverMs: 200,
  progressMs: 20,
  onProgress: ({ records }) => process.send?.({ records }),
});
