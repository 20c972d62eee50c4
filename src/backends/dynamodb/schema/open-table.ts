import type { RegistryCall } from '../../../backend.js';
import { BackendUnavailable, InfrastructureError } from '../../../core/errors.js';
import type { Deadline } from '../client/deadline.js';
import type { Table } from '../client/requests.js';
import { checkSchema, type TableSchema } from './schema.js';
import type { Transport } from '../client/transport.js';

/** How often the version record is read at most until two answers in a row agree on the time. */
const MAX_READS = 4;

/**
 * Throws unless the table exists and has a layout that code of the version `ours` understands. When it returns, the store's
 * time is known: one answer is enough if it agrees with this machine's clock; otherwise two answers must agree.
 */
export async function openTable(table: Table, deadline: Deadline, ours?: number): Promise<TableSchema> {
  for (let reads = 0; reads < MAX_READS; reads++) {
    const schema = await checkSchema(table, deadline, ours);
    if (table.transport.isTimeInDoubt?.() !== true) return schema;
  }
  throw new BackendUnavailable(`${table.name}: no two of ${MAX_READS} answers agree on the time`, 'server');
}

/** Reports a large correction of the time, or an answer whose time was ignored, to the limiter's `onError`. */
export function reportClockNews(transport: Transport, { tuning }: Pick<RegistryCall, 'tuning'>): void {
  const news = transport.takeClockNews?.() ?? null;
  if (news === null) return;
  const amount = `${Math.abs(news.byMs)} ms ${news.byMs > 0 ? 'ahead of' : 'behind'}`;
  const message =
    news.kind === 'moved'
      ? `The store's time was corrected: two answers named a time that is ${amount} the one in use`
      : `An answer named a time that is ${amount} the one in use. The next answer did not confirm it, so it was ignored`;
  tuning?.onError?.(new InfrastructureError('infrastructure.clock', message), 'the time of the store');
}
