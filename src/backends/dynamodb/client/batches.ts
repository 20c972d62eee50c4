import { BackendUnavailable } from '../../../core/errors.js';
import { keyItem, type RecordKey } from '../table/keys.js';
import { backOffMs, type Deadline, sleep, timeLeftMs } from '../../../machine-time.js';
import { errorOf } from './failures.js';
import { sendRead, sendRepeatable, type Table } from './requests.js';
import type { Item } from './transport.js';

/** The number of keys that one BatchGetItem may name. */
export const MAX_KEYS = 100;

/**
 * Items in the order of the keys; undefined where there is none. Keys that the store left unprocessed are requested
 * again, with pauses: an unprocessed key does not mean a missing record.
 */
export async function readItems(
  table: Table,
  keys: readonly RecordKey[],
  deadline: Deadline,
  consistent = true,
): Promise<readonly (Item | undefined)[]> {
  const found = new Map<string, Item>();
  for (let at = 0; at < keys.length; at += MAX_KEYS) {
    await readBatch(table, keys.slice(at, at + MAX_KEYS), deadline, consistent, (items) => {
      for (const item of items) found.set(printKey(item), item);
    });
  }
  return keys.map(({ PK, SK }) => found.get(`${PK}\n${SK}`));
}

/**
 * Reads at most `MAX_KEYS` keys, until none is unprocessed. Calls `onAnswer` with the items of each answer and the keys
 * that are still to be read, printed by `printKey`.
 */
export async function readBatch(
  table: Table,
  keys: readonly RecordKey[],
  deadline: Deadline,
  consistent: boolean,
  onAnswer: (items: readonly Item[], left: ReadonlySet<string>) => void,
): Promise<void> {
  const distinct = new Map(keys.map(({ PK, SK }) => [`${PK}\n${SK}`, keyItem({ PK, SK })]));
  let left: Item[] = [...distinct.values()];
  for (let attempt = 0; left.length > 0; attempt++) {
    const input = { RequestItems: { [table.name]: { Keys: left, ConsistentRead: consistent } } };
    const output = await sendRead(table, 'BatchGetItem', input, deadline);
    left = output.UnprocessedKeys?.[table.name]?.Keys ?? [];
    onAnswer(output.Responses?.[table.name] ?? [], new Set(left.map(printKey)));
    if (left.length > 0) await pauseForUnprocessed(table, attempt, deadline, 'BatchGetItem');
  }
}

/** The key of an item, as text. */
export function printKey(item: Item): string {
  return `${item['PK']?.S ?? ''}\n${item['SK']?.S ?? ''}`;
}

const MAX_DELETES = 25;

/** Deletes records by their keys, and repeats what the store left unprocessed. */
export async function deleteItems(table: Table, keys: readonly RecordKey[], deadline: Deadline): Promise<void> {
  for (let at = 0; at < keys.length; at += MAX_DELETES) {
    let left = keys.slice(at, at + MAX_DELETES).map((key) => ({ DeleteRequest: { Key: keyItem(key) } }));
    for (let attempt = 0; left.length > 0; attempt++) {
      const input = { RequestItems: { [table.name]: left } };
      const answer = await sendRepeatable(table, 'BatchWriteItem', input, deadline);
      if (!answer.ok) throw errorOf(answer.failure, 'BatchWriteItem');
      left = (answer.output.UnprocessedItems?.[table.name] ?? []) as typeof left;
      if (left.length > 0) await pauseForUnprocessed(table, attempt, deadline, 'BatchWriteItem');
    }
  }
}

async function pauseForUnprocessed(table: Table, attempt: number, deadline: Deadline, what: string): Promise<void> {
  const waitMs = backOffMs(attempt, table.random);
  if (timeLeftMs(deadline) <= waitMs) {
    throw new BackendUnavailable(`${what}: DynamoDB left a part unprocessed until the deadline`, 'throttled');
  }
  await sleep(waitMs);
}
