import { text } from '../table/attributes.js';
import { deadlineIn } from '../../../machine-time.js';
import { REQUEST_MS, sendRead, type Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';
import { withRetries } from './retry.js';

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
