import { BackendUnavailable } from '../../../core/errors.js';
import type { Deadline } from '../../../machine-time.js';
import type { Table } from '../client/requests.js';
import { checkSchema, type TableSchema } from './schema.js';

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
