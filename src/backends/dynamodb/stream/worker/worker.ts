import { completeClock, systemClock } from '../../../../clock.js';
import { deadlineIn } from '../../../../machine-time.js';
import type { Table } from '../../client/requests.js';
import { openTable } from '../../schema/open-table.js';
import { openTransport } from '../../client/open-transport.js';
import { openSdkStream } from './sdk-stream.js';
import type { StreamApi } from './stream-api.js';
import { followStream } from './follow-stream.js';
import { checkWorkerOptions, type WorkerOptions } from './worker-options.js';

const OPEN_MS = 10_000;

/**
 * Follows a table's stream until the signal aborts: counts usage, archives audit records that expire, splits busy
 * buckets. Any number of workers may run: they share the shards of the stream and count nothing twice. Rejects if the
 * table or its stream cannot be opened, or if the stream is disabled later; other failures are reported and retried.
 */
export async function runWorker(options: WorkerOptions): Promise<void> {
  checkWorkerOptions(options);
  const transport = openTransport(options);
  const table: Table = { name: options.table, transport, random: Math.random };
  const clock = completeClock(options.clock ?? { now: () => transport.storeTimeMs() ?? systemClock.now() });
  let stream: StreamApi | null = null;
  try {
    await options.archive?.check?.();
    await openTable(table, deadlineIn(OPEN_MS));
    stream = await openSdkStream(table, options);
    await followStream(table, stream, clock, options);
  } finally {
    stream?.close();
    transport.close();
  }
}
