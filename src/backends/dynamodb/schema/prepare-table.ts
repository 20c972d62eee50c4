import { SchemaMismatch } from '../../../core/errors.js';
import { type CreateTableOptions, finishTable, untilActive } from './create-table.js';
import { type Deadline, deadlineIn } from '../../../machine-time.js';
import type { Table } from '../client/requests.js';
import { checkSchema, hasVersion, inspectVersion, raiseVersion, refuseOlder, type VersionRecord } from './schema.js';
import { openTransport } from '../client/open-transport.js';
import { tableNameOf } from '../table/table-name.js';

const PATIENCE_MS = 120_000;
const READ_MS = 20_000;

export interface TableReadiness {
  readonly name: string;
  /** false: the version record already existed. */
  readonly written: boolean;
}

/** What the version record of a table means for this code. */
export type TableVersion = VersionRecord | { readonly kind: 'no-table' };

/**
 * Prepares a table that was created outside of Headgate: registers `default` and writes the version record. An existing
 * record is not changed. Throws `SchemaMismatch` if its version does not fit this code.
 */
export async function prepareTable(options: CreateTableOptions): Promise<TableReadiness> {
  return withTable(options, PATIENCE_MS, async (table, deadline) => {
    await untilActive(table, deadline);
    const written = !(await hasVersion(table, deadline));
    if (written) {
      await refuseOlder(table, deadline);
      await finishTable(table, deadline);
    }
    await checkSchema(table, deadline);
    return { name: table.name, written };
  });
}

/** Reads the version record, and writes nothing. */
export async function readTableVersion(options: CreateTableOptions): Promise<TableVersion> {
  return withTable(options, READ_MS, async (table, deadline) => {
    try {
      return await inspectVersion(table, deadline);
    } catch (error) {
      if (error instanceof SchemaMismatch) return { kind: 'no-table' };
      throw error;
    }
  });
}

/** Raises a usable table to the version of this code. Returns false if it has that version. */
export async function raiseTable(options: CreateTableOptions): Promise<boolean> {
  return withTable(options, READ_MS, async (table, deadline) => {
    const { kind } = await inspectVersion(table, deadline);
    return kind === 'upgradable' && raiseVersion(table, deadline);
  });
}

async function withTable<T>(
  options: CreateTableOptions,
  patienceMs: number,
  use: (table: Table, deadline: Deadline) => Promise<T>,
): Promise<T> {
  const name = tableNameOf(options, 'tableName');
  const { region, endpoint } = options;
  const transport = openTransport(options);
  try {
    return await use({ name, transport, random: Math.random, address: { region, endpoint } }, deadlineIn(patienceMs));
  } finally {
    transport.close();
  }
}
