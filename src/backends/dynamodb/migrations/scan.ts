import { keyItem, readKey, text } from '../table/attributes.js';
import { deadlineIn } from '../client/deadline.js';
import { sendRead, type Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';
import { conversionIdOf, mayContinue, type OldRecord, readOldRecord } from './legacy/old-record.js';
import { REQUEST_MS, withRetries } from './retry.js';

/** Items read per page: the number that a migration has in memory, and repeats after a crash. */
const PAGE = 250;

/** What a scan returns. DynamoDB still reads and charges for the other items. */
export interface ScanFilter {
  /** Prefixes of sort keys. */
  readonly sortKeys?: readonly string[];
  /** Attributes to return; all unless given. */
  readonly attributes?: readonly string[];
}

export interface ScanPage {
  readonly items: readonly Item[];
  /** undefined: this was the last page. */
  readonly last: Item | undefined;
}

/**
 * Scans the table in pages. The next page is read before the current one is returned: not every engine can continue
 * from a key that was deleted meanwhile.
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

/** The old records of one page, in groups that belong together. */
export interface OldPage {
  readonly groups: readonly (readonly OldRecord[])[];
  /** Everything up to this key is in this page or an earlier one; undefined: nothing yet. */
  readonly after: Item | undefined;
  readonly done: boolean;
}

/** Never splits a group: a group that may continue on the next page is returned with that page. */
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
        if (group !== undefined && leader !== undefined && conversionIdOf(leader) === conversionIdOf(record))
          group.push(record);
        else {
          groups.push([record]);
          beforeGroup = previous;
        }
      }
      previous = keyItem(readKey(item));
    }
    const trailing = groups.at(-1)?.at(-1);
    const isOpen =
      last !== undefined && trailing !== undefined && mayContinue(trailing) && trailing.item === items.at(-1);
    waiting = isOpen ? (groups.pop() ?? []) : [];
    before = isOpen ? beforeGroup : (last ?? previous);
    yield { groups, after: before, done: last === undefined };
  }
}
