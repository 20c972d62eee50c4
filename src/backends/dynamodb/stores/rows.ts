import type { QueryInput } from '@aws-sdk/client-dynamodb';
import type { Awaitable, Page } from '../../../backend.js';
import { text } from '../table/attributes.js';
import type { Deadline } from '../../../machine-time.js';
import { sendRead, type Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';

/**
 * A part of the table (consistent reads) or of an index (eventually consistent, keys only), in the order of the sort
 * key.
 */
export interface RowRange {
  readonly index: 'GSI1' | 'GSI2' | 'GSI3' | 'GSI4' | null;
  /** Several partitions are merged. */
  readonly partitions: readonly string[];
  /** Both ends are included. */
  readonly from: string;
  readonly to: string;
  /** From `to` to `from`. */
  readonly isDescending?: boolean;
}

/** Sort keys that start with `prefix` and come after `after`, the cursor of the previous page. */
export function behind(prefix: string, after: string | null): Pick<RowRange, 'from' | 'to'> {
  // A space sorts before every character of a name, and DEL after.
  return { from: `${prefix}${after ?? ''} `, to: `${prefix}\u007f` };
}

/** As `behind`. In descending order: sort keys that start with `prefix` and come before `after`. */
export function beyond(
  prefix: string,
  { after, isDescending = false }: { readonly after: string | null; readonly isDescending?: boolean },
): Pick<RowRange, 'from' | 'to' | 'isDescending'> {
  const all = behind(prefix, null);
  if (!isDescending) return behind(prefix, after);
  return { ...all, isDescending, to: after === null ? all.to : `${prefix}${justBefore(after)}` };
}

/** The largest text before `key` that has no character after DEL. */
function justBefore(key: string): string {
  return `${key.slice(0, -1)}${String.fromCharCode(key.charCodeAt(key.length - 1) - 1)}\u007f`;
}

/** The name of the attribute that rows of a range are sorted by. */
function sortAttribute({ index }: Pick<RowRange, 'index'>): string {
  return index === null ? 'SK' : `${index}SK`;
}

const MAX_ROWS = 1_000;
const SPARE_ROWS = 2;

/** Rows that were read from one partition and not returned yet. */
interface PartitionRows {
  readonly partition: string;
  rows: Item[];
  startKey: Item | undefined;
  done: boolean;
}

/**
 * All rows of a range over all its partitions, in one order. `expected`: how many rows the caller expects to use. Rows
 * are read as needed, until there is no next key: a short or empty page is not the end.
 */
export async function* readRows(
  table: Table,
  range: RowRange,
  expected: number,
  deadline: () => Deadline,
): AsyncGenerator<Item> {
  // DynamoDB refuses a range whose start is after its end.
  if (range.from > range.to) return;
  const sort = sortAttribute(range);
  const limit = Math.min(MAX_ROWS, Math.ceil(expected / range.partitions.length) + SPARE_ROWS);
  const lanes = range.partitions.map((partition): PartitionRows => ({
    partition,
    rows: [],
    startKey: undefined,
    done: false,
  }));
  for (;;) {
    if (!lanes.every(isReady)) {
      await Promise.all(lanes.map(async (lane) => refill(table, range, lane, limit, deadline)));
    }
    const row = firstOf(lanes, sort, range)?.rows.shift();
    if (row === undefined) return;
    yield row;
  }
}

function isReady(lane: PartitionRows): boolean {
  return lane.done || lane.rows.length > 0;
}

function firstOf(
  lanes: readonly PartitionRows[],
  sort: string,
  { isDescending = false }: RowRange,
): PartitionRows | undefined {
  let first: PartitionRows | undefined;
  for (const lane of lanes) {
    if (lane.rows.length === 0) continue;
    if (first === undefined || sortOf(lane, sort) < sortOf(first, sort) !== isDescending) first = lane;
  }
  return first;
}

function sortOf(lane: PartitionRows, sort: string): string {
  return lane.rows[0]?.[sort]?.S ?? '';
}

async function refill(
  table: Table,
  range: RowRange,
  lane: PartitionRows,
  limit: number,
  deadline: () => Deadline,
): Promise<void> {
  while (!isReady(lane)) {
    const output = await sendRead(table, 'Query', queryOf(table, range, lane, limit), deadline());
    lane.rows.push(...(output.Items ?? []));
    lane.startKey = output.LastEvaluatedKey;
    lane.done = output.LastEvaluatedKey === undefined;
  }
}

function queryOf(table: Table, range: RowRange, lane: PartitionRows, limit: number): QueryInput {
  const { index, from, to, isDescending = false } = range;
  return {
    TableName: table.name,
    ...(index === null ? { ConsistentRead: true } : { IndexName: index }),
    KeyConditionExpression: '#p = :p AND #s BETWEEN :from AND :to',
    ExpressionAttributeNames: { '#p': index === null ? 'PK' : `${index}PK`, '#s': sortAttribute(range) },
    ExpressionAttributeValues: { ':p': text(lane.partition), ':from': text(from), ':to': text(to) },
    Limit: limit,
    ...(isDescending ? { ScanIndexForward: false } : {}),
    ...(lane.startKey === undefined ? {} : { ExclusiveStartKey: lane.startKey }),
  };
}

/**
 * One page of the records that rows lead to. `load` returns undefined for rows without a record (a lagging index, an
 * expired record). More rows are read in their place, so a page is short only if it is the last.
 */
export async function pageOfRecords<T>(
  rows: AsyncIterable<Item>,
  limit: number,
  load: (rows: readonly Item[]) => Awaitable<readonly (T | undefined)[]>,
  cursorOf: (item: T) => string,
): Promise<Page<T>> {
  const found: T[] = [];
  const loadMore = async (some: readonly Item[]): Promise<void> => {
    for (const item of await load(some)) if (item !== undefined) found.push(item);
  };
  let waiting: Item[] = [];
  for await (const row of rows) {
    waiting.push(row);
    if (found.length + waiting.length <= limit) continue;
    await loadMore(waiting);
    waiting = [];
    if (found.length > limit) break;
  }
  if (waiting.length > 0) await loadMore(waiting);
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return { items, next: found.length > limit && last !== undefined ? cursorOf(last) : null };
}
