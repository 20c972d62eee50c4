import { readKey } from '../table/attributes.js';
import { type Deadline, deadlineIn } from '../../../machine-time.js';
import {
  buildEntityKey,
  buildSequenceKey,
  index,
  parseEntityKey,
  parseShardKey,
  type RecordKey,
  SUFFIXES,
} from '../table/keys.js';
import { deleteItems } from '../client/batches.js';
import type { Table } from '../client/requests.js';
import { readRows, type RowRange } from './rows.js';

/** The limit of one delete request; each has its own deadline. */
const BATCH = 25;
const ROWS = 1_000;

/** Below and above the first character of every sort key of this table. */
const WHOLE = { from: ' ', to: '\u007f' } as const;

interface Purge {
  readonly table: Table;
  readonly deadline: () => Deadline;
}

/**
 * Deletes every record of a namespace, and returns how many there were. One pass: records that are written meanwhile,
 * or are not in the index yet, are found by the next pass. Each request has a deadline, the whole has none.
 */
export async function purgeNamespace(table: Table, ns: string, timeoutMs: number): Promise<number> {
  const purge: Purge = { table, deadline: () => deadlineIn(timeoutMs) };
  let removed = await deletePartition(purge, buildSequenceKey(ns).PK);
  for (const suffix of SUFFIXES) removed += await deleteListed(purge, ns, suffix);
  return removed;
}

/** Deletes what the index lists, and everything under the entities that it names: the index does not list all usage. */
async function deleteListed(purge: Purge, ns: string, suffix: string): Promise<number> {
  let removed = 0;
  for await (const keys of batches(purge, { index: 'GSI4', partitions: [index.all(ns, suffix)], ...WHOLE })) {
    const entities = new Set(keys.map(({ PK }) => entityOf(PK)));
    for (const id of entities) if (id !== null) removed += await deletePartition(purge, buildEntityKey(ns, id).PK);
    const others = keys.filter(({ PK }) => parseEntityKey(PK) === null);
    await deleteItems(purge.table, others, purge.deadline());
    removed += others.length;
  }
  return removed;
}

function entityOf(pk: string): string | null {
  return parseEntityKey(pk) ?? parseShardKey(pk)?.entityId ?? null;
}

async function deletePartition(purge: Purge, partition: string): Promise<number> {
  let removed = 0;
  for await (const keys of batches(purge, { index: null, partitions: [partition], ...WHOLE })) {
    await deleteItems(purge.table, keys, purge.deadline());
    // The sequence belongs to the namespace itself and is not counted.
    removed += keys.filter(({ SK }) => SK !== buildSequenceKey('').SK).length;
  }
  return removed;
}

async function* batches({ table, deadline }: Purge, range: RowRange): AsyncGenerator<readonly RecordKey[]> {
  let batch: RecordKey[] = [];
  for await (const row of readRows(table, range, ROWS, deadline)) {
    batch.push(readKey(row));
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
