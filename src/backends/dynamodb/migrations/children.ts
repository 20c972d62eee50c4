import { keyItem, number, text } from '../attributes.js';
import { deadlineIn } from '../deadline.js';
import { errorOf } from '../failures.js';
import { buildEntityKey, index, parseNamespaceId } from '../keys.js';
import { CHILDREN } from '../records.js';
import { sendRead, sendRepeatable, type Table } from '../requests.js';
import type { Item } from '../transport.js';
import { patiently, REQUEST_MS } from './patience.js';
import { SEGMENTS } from './scan.js';

/** Parents that were counted lately: children of one stand anywhere in a table. */
const MOST_REMEMBERED = 100_000;

/**
 * Tells every parent how many children it has, which old layouts did not keep: without it a parent could be deleted under
 * them. Sets what is so, however often it is done.
 */
export async function countChildren(table: Table, signal?: AbortSignal): Promise<void> {
  const counted = new Set<string>();
  const one = async (segment: number): Promise<void> => {
    for (let start: Item | undefined; ;) {
      const page = await patiently(async () => readChildren(table, segment, start), signal);
      for (const item of page.items) {
        const parent = { ns: parseNamespaceId(item['PK']?.S ?? ''), id: item['parent_id']?.S ?? '' };
        const name = `${parent.ns}/${parent.id}`;
        if (counted.has(name)) continue;
        if (counted.size >= MOST_REMEMBERED) counted.clear();
        counted.add(name);
        await patiently(async () => countOf(table, parent.ns, parent.id), signal);
      }
      start = page.last;
      if (start === undefined) return;
    }
  };
  await Promise.all(Array.from({ length: SEGMENTS }, async (_, segment) => one(segment)));
}

async function readChildren(
  table: Table,
  segment: number,
  start: Item | undefined,
): Promise<{ readonly items: readonly Item[]; readonly last: Item | undefined }> {
  const input = {
    TableName: table.name,
    ConsistentRead: true,
    Segment: segment,
    TotalSegments: SEGMENTS,
    FilterExpression: 'SK = :meta AND attribute_type(parent_id, :text)',
    ExpressionAttributeValues: { ':meta': text('#META'), ':text': text('S') },
    ProjectionExpression: 'PK, parent_id',
    ...(start === undefined ? {} : { ExclusiveStartKey: start }),
  };
  const output = await sendRead(table, 'Scan', input, deadlineIn(REQUEST_MS));
  return { items: output.Items ?? [], last: output.LastEvaluatedKey };
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
