import { readKey } from '../table/attributes.js';
import { type Deadline, deadlineIn } from '../client/deadline.js';
import {
  buildEntityKey,
  buildSequenceKey,
  index,
  parseEntityKey,
  parseShardKey,
  type RecordKey,
  SUFFIXES,
} from '../table/keys.js';
import { deleteItems, type Table } from '../client/requests.js';
import { readRows, type RowRange } from './rows.js';

/** As many as one request deletes: each has a deadline of its own. */
const BATCH = 25;
const ROWS = 1_000;

/** Below and above everything that a sort key of this table begins with. */
const WHOLE = { from: ' ', to: '\u007f' } as const;

interface Purge {
  readonly table: Table;
  readonly deadline: () => Deadline;
}

/**
 * Deletes every record of a namespace, and gives how many there were. One pass: what is written meanwhile, or is not in
 * the index yet, is found by the next. Each request has a deadline, the whole has none.
 */
export async function purgeNamespace(table: Table, ns: string, timeoutMs: number): Promise<number> {
  const purge: Purge = { table, deadline: () => deadlineIn(timeoutMs) };
  let removed = await deletePartition(purge, buildSequenceKey(ns).PK);
  for (const suffix of SUFFIXES) removed += await deleteListed(purge, ns, suffix);
  return removed;
}

/** What the index lists, and everything under the entities that it names: not all usage is listed. */
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
    // The sequence is the namespace's own, and no record that anybody made.
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
