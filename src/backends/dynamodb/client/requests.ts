import { BackendUnavailable, type HeadgateError } from '../../../core/errors.js';
import { keyItem } from '../table/attributes.js';
import { backOffMs, type Deadline, pause, timeLeftMs } from './deadline.js';
import { errorOf, type Failure, failureOf } from './failures.js';
import type { InFlight } from './in-flight.js';
import type { RecordKey } from '../table/keys.js';
import type { Item, Operation, Operations, Transport } from './transport.js';

export type Answer<Op extends Operation> =
  | { readonly ok: true; readonly output: Operations[Op][1] }
  | { readonly ok: false; readonly failure: Failure };

/** One table and its transport. All requests to DynamoDB go through it. */
export interface Table {
  readonly name: string;
  readonly transport: Transport;
  readonly random: () => number;
  /** Bounds the concurrent requests. Unbounded if absent. */
  readonly inFlight?: InFlight;
  /** The region and endpoint that the client was given. Messages name commands, which must reach the same table. */
  readonly address?: { readonly region?: string | undefined; readonly endpoint?: string | undefined };
}

/** Sends once. A failure is a value, because only the sender knows what may be sent again. */
export async function send<Op extends Operation>(
  table: Table,
  operation: Op,
  input: Operations[Op][0],
  deadline: Deadline,
): Promise<Answer<Op>> {
  if (timeLeftMs(deadline) <= 0) {
    const error = new BackendUnavailable(`${operation}: the deadline passed before it was sent`, 'timeout');
    return { ok: false, failure: { kind: 'unreached', error } };
  }
  const { inFlight } = table;
  try {
    const turn = inFlight?.enter(deadline);
    if (turn !== undefined) await turn;
  } catch (error) {
    return { ok: false, failure: { kind: 'unreached', error: error as BackendUnavailable } };
  }
  try {
    const output = await table.transport.send(operation, input, deadline);
    inFlight?.leave(true);
    return { ok: true, output };
  } catch (error) {
    const failure = failureOf(error, operation, table.name);
    inFlight?.leave(failure.kind !== 'lost' && failure.kind !== 'unreached');
    return { ok: false, failure };
  }
}

/** Failures after which a retry may succeed. */
type Transient = Extract<Failure, { readonly error: HeadgateError }>;

function isTransient(failure: Failure): failure is Transient {
  return failure.kind !== 'condition' && failure.kind !== 'cancelled' && failure.kind !== 'fatal';
}

const MAX_ATTEMPTS = 6;

/**
 * Sends a request that may be sent twice (reads, and writes whose condition makes the second one harmless) until it is
 * answered, within the deadline. Returns a failed condition, and throws every other failure.
 */
export async function sendRepeatable<Op extends Operation>(
  table: Table,
  operation: Op,
  input: Operations[Op][0],
  deadline: Deadline,
): Promise<Answer<Op>> {
  for (let attempt = 0; ; attempt++) {
    const answer = await send(table, operation, input, deadline);
    if (answer.ok || !isTransient(answer.failure)) {
      if (!answer.ok && answer.failure.kind === 'fatal') throw answer.failure.error;
      return answer;
    }
    const waitMs = backOffMs(attempt, table.random);
    if (attempt + 1 >= MAX_ATTEMPTS || timeLeftMs(deadline) <= waitMs) throw answer.failure.error;
    await pause(waitMs);
  }
}

/** For requests without a condition. */
export async function sendRead<Op extends 'BatchGetItem' | 'DescribeTable' | 'GetItem' | 'Query' | 'Scan'>(
  table: Table,
  operation: Op,
  input: Operations[Op][0],
  deadline: Deadline,
): Promise<Operations[Op][1]> {
  const answer = await sendRepeatable(table, operation, input, deadline);
  if (!answer.ok) throw errorOf(answer.failure, operation);
  return answer.output;
}

export async function readItem(
  table: Table,
  key: RecordKey,
  deadline: Deadline,
  consistent = true,
): Promise<Item | undefined> {
  const input = { TableName: table.name, Key: keyItem(key), ConsistentRead: consistent };
  const output = await sendRead(table, 'GetItem', input, deadline);
  return output.Item;
}

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
  await pause(waitMs);
}
