import { keyItem, number, readText, text } from '../attributes.js';
import { deadlineIn } from '../deadline.js';
import { errorOf } from '../failures.js';
import { buildEntityKey, index, parseNamespaceId } from '../keys.js';
import { CHILDREN } from '../records.js';
import { sendRead, sendRepeatable, type Table } from '../requests.js';
import type { Item } from '../transport.js';
import { patiently, REQUEST_MS } from './patience.js';
import { scanTable } from './scan.js';

/** Parents that were counted lately: children of one stand anywhere in a table. */
const MOST_REMEMBERED = 100_000;

/**
 * Tells every parent how many children it has, which old layouts did not keep: without it a parent could be deleted under
 * them. Sets what is so, however often it is done.
 */
export async function countChildren(table: Table, signal?: AbortSignal): Promise<void> {
  const counted = new Set<string>();
  const filter = { sortKeys: ['#META'], attributes: ['PK', 'parent_id'] };
  for await (const { items } of scanTable(table, filter, undefined, signal)) {
    for (const item of items) {
      const parentId = readText(item, 'parent_id');
      const ns = parseNamespaceId(readText(item, 'PK') ?? '');
      if (parentId === undefined || counted.has(`${ns}/${parentId}`)) continue;
      if (counted.size >= MOST_REMEMBERED) counted.clear();
      counted.add(`${ns}/${parentId}`);
      await patiently(async () => countOf(table, ns, parentId), signal);
    }
  }
}

async function countOf(table: Table, ns: string, parentId: string): Promise<void> {
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
  const input = {
    TableName: table.name,
    Key: keyItem(buildEntityKey(ns, parentId)),
    UpdateExpression: 'SET #children = :children',
    // A parent without a record has nothing to be deleted; one that knows its number stays as it is.
    ConditionExpression: 'attribute_exists(PK) AND (attribute_not_exists(#children) OR #children <> :children)',
    ExpressionAttributeNames: { '#children': CHILDREN },
    ExpressionAttributeValues: { ':children': number(children) },
  };
  const answer = await sendRepeatable(table, 'UpdateItem', input, deadlineIn(REQUEST_MS));
  if (!answer.ok && answer.failure.kind !== 'condition') throw errorOf(answer.failure, 'UpdateItem');
}
