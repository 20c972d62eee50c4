import { keyItem, readKey, text } from '../table/attributes.js';
import { deadlineIn } from '../client/deadline.js';
import { sendRead, type Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';
import { mayGoOn, readOldRecord, unitIdOf } from './legacy/old-record.js';
import { withRetries, REQUEST_MS } from './retry.js';
import type { OldRecord } from './convert/conversion.js';

/** Items that are looked at for one page: what a migration has in memory at once, and does again after it was killed. */
const PAGE = 250;

/** What a scan shows; the rest is read all the same, and paid for, but it does not travel. */
export interface ScanFilter {
  /** Beginnings of sort keys. */
  readonly sortKeys?: readonly string[];
  /** Attributes; all unless given. */
  readonly attributes?: readonly string[];
}

export interface ScanPage {
  readonly items: readonly Item[];
  /** undefined: that was all. */
  readonly last: Item | undefined;
}

/**
 * The table in pages. The next one is asked for before the one at hand is given: not every engine finds its way from a key
 * that has been deleted meanwhile.
 */
export async function* scanTable(
  table: Table,
  filter: ScanFilter,
  after: Item | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<ScanPage> {
  for (let page = await readPage(table, filter, after, signal); ;) {
    const next = page.last === undefined ? null : await readPage(table, filter, page.last, signal);
    yield page;
    if (next === null) return;
    page = next;
  }
}

async function readPage(
  table: Table,
  filter: ScanFilter,
  start: Item | undefined,
  signal: AbortSignal | undefined,
): Promise<ScanPage> {
  const input = {
    TableName: table.name,
    ConsistentRead: true,
    Limit: PAGE,
    ...expressionOf(filter),
    ...(start === undefined ? {} : { ExclusiveStartKey: start }),
  };
  const output = await withRetries(async () => sendRead(table, 'Scan', input, deadlineIn(REQUEST_MS)), signal);
  return { items: output.Items ?? [], last: output.LastEvaluatedKey };
}

function expressionOf({ sortKeys = [], attributes = [] }: ScanFilter): object {
  const values = sortKeys.map((prefix, at) => [`:k${at}`, text(prefix)] as const);
  const names = attributes.map((name, at) => [`#n${at}`, name] as const);
  return {
    ...(values.length > 0 && {
      FilterExpression: values.map(([alias]) => `begins_with(SK, ${alias})`).join(' OR '),
      ExpressionAttributeValues: Object.fromEntries(values),
    }),
    ...(names.length > 0 && {
      ProjectionExpression: names.map(([alias]) => alias).join(', '),
      ExpressionAttributeNames: Object.fromEntries(names),
    }),
  };
}

/** Old records of one page, in groups that belong together. */
export interface OldPage {
  readonly groups: readonly (readonly OldRecord[])[];
  /** Everything up to here is in this page or an earlier one; undefined: nothing yet. */
  readonly after: Item | undefined;
  readonly done: boolean;
}

/** Groups are never cut: one that may go on on the next page waits for it. */
export async function* scanGroups(
  table: Table,
  filter: ScanFilter,
  after: Item | undefined,
  claims: (record: OldRecord) => boolean,
  signal: AbortSignal | undefined,
): AsyncGenerator<OldPage> {
  let waiting: OldRecord[] = [];
  let before = after;
  for await (const { items, last } of scanTable(table, filter, after, signal)) {
    const groups: OldRecord[][] = waiting.length === 0 ? [] : [waiting];
    let previous = before;
    let beforeGroup = before;
    for (const item of items) {
      const record = readOldRecord(item);
      if (record !== null && claims(record)) {
        const group = groups.at(-1);
        const [leader] = group ?? [];
        if (group !== undefined && leader !== undefined && unitIdOf(leader) === unitIdOf(record)) group.push(record);
        else {
          groups.push([record]);
          beforeGroup = previous;
        }
      }
      previous = keyItem(readKey(item));
    }
    const trailing = groups.at(-1)?.at(-1);
    const goesOn = last !== undefined && trailing !== undefined && mayGoOn(trailing) && trailing.item === items.at(-1);
    waiting = goesOn ? (groups.pop() ?? []) : [];
    before = goesOn ? beforeGroup : (last ?? previous);
    yield { groups, after: before, done: last === undefined };
  }
}
