import { buildEntityKey, index, keyItem, parseNamespaceId } from '../../table/keys.js';
import { number, readText, text } from '../../table/attributes.js';
import { deadlineIn } from '../../../../machine-time.js';
import { errorOf } from '../../client/failures.js';
import { CHILDREN } from '../../table/records.js';
import { REQUEST_MS, readItem, sendRead, sendRepeatable, type Table } from '../../client/requests.js';
import type { Item } from '../../client/transport.js';
import { withRetries } from '../../schema/retry.js';
import { scanTable } from '../../schema/scan-table.js';

/** The number of counted parents that are cached. The children of one parent are spread over the whole table. */
const MAX_CACHED_PARENTS = 100_000;

/**
 * Stores on every parent how many children it has. Old layouts did not store this, and without it a parent with
 * children could be deleted. Repeating it gives the same result.
 */
export async function countChildren(table: Table, signal?: AbortSignal): Promise<void> {
  const counted = new Set<string>();
  const filter = { sortKeys: ['#META'], attributes: ['PK', 'parent_id'] };
  for await (const { items } of scanTable(table, filter, undefined, signal)) {
    for (const item of items) {
      const parentId = readText(item, 'parent_id');
      const ns = parseNamespaceId(readText(item, 'PK') ?? '');
      if (parentId === undefined || counted.has(`${ns}/${parentId}`)) continue;
      if (counted.size >= MAX_CACHED_PARENTS) counted.clear();
      counted.add(`${ns}/${parentId}`);
      await withRetries(async () => countOf(table, ns, parentId), signal);
    }
  }
}

async function countOf(table: Table, ns: string, parentId: string): Promise<void> {
  const key = buildEntityKey(ns, parentId);
  const parent = await readItem(table, key, deadlineIn(REQUEST_MS));
  // A parent without a record cannot be deleted.
  if (parent === undefined) return;
  let children = 0;
  for (let start: Item | undefined; ;) {
    const input = {
      TableName: table.name,
      IndexName: 'GSI1',
      Select: 'COUNT' as const,
      KeyConditionExpression: 'GSI1PK = :parent',
      ExpressionAttributeValues: { ':parent': text(index.children(ns, parentId)) },
      ...(start === undefined ? {} : { ExclusiveStartKey: start }),
    };
    const output = await sendRead(table, 'Query', input, deadlineIn(REQUEST_MS));
    children += output.Count ?? 0;
    start = output.LastEvaluatedKey;
    if (start === undefined) break;
  }
  const before = parent[CHILDREN];
  if (before?.N === String(children)) return;
  const input = {
    TableName: table.name,
    Key: keyItem(key),
    UpdateExpression: 'SET #children = :children',
    // A child that was added or removed during the count has updated the number itself; this condition then fails.
    ConditionExpression: `attribute_exists(PK) AND ${before === undefined ? 'attribute_not_exists(#children)' : '#children = :before'}`,
    ExpressionAttributeNames: { '#children': CHILDREN },
    ExpressionAttributeValues: { ':children': number(children), ...(before && { ':before': before }) },
  };
  const answer = await sendRepeatable(table, 'UpdateItem', input, deadlineIn(REQUEST_MS));
  if (!answer.ok && answer.failure.kind !== 'condition') throw errorOf(answer.failure, 'UpdateItem');
}
