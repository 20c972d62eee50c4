import { BackendUnavailable, type HeadgateError } from '../../../core/errors.js';
import { keyItem, type RecordKey } from '../table/keys.js';
import { backOffMs, type Deadline, sleep, timeLeftMs } from '../../../machine-time.js';
import { errorOf, type Failure, failureOf } from './failures.js';
import { LostAnswer } from './lost-answer.js';
import type { Item, Operation, Operations, Transport } from './transport.js';

export type Answer<Op extends Operation> =
  | { readonly ok: true; readonly output: Operations[Op][1] }
  | { readonly ok: false; readonly failure: Failure };

/** The timeout of each request that no caller's deadline bounds: of scans, migrations, workers. */
export const REQUEST_MS = 10_000;

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
    const asked = askForProof(operation, input);
    const output = await table.transport.send(operation, asked, deadline);
    const missing = findMissingPart(operation, asked, output);
    if (missing !== null) throw new LostAnswer(`the answer has no ${missing}`);
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
    await sleep(waitMs);
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

/** More concurrent requests would only wait for each other and for new connections. */
const MAX_IN_FLIGHT = 128;

interface Waiter {
  readonly turn: Turn;
  readonly admit: () => void;
  readonly refuse: (error: BackendUnavailable) => void;
}

/**
 * Bounds the concurrent requests of one process. Further requests wait in the order of their arrival. A request that
 * cannot start in time is refused, and is not sent.
 */
export class InFlight {
  #free: number;
  readonly #waiters: Waiter[] = [];
  #answeredMs = Number.NEGATIVE_INFINITY;

  constructor(most: number = MAX_IN_FLIGHT) {
    this.#free = most;
  }

  /**
   * Returns undefined if the request may start now, else a promise that resolves when it may or rejects if too late.
   */
  enter(deadline: Deadline): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free -= 1;
      return undefined;
    }
    return new Promise((admit, refuse) => {
      this.#waiters.push({ turn: turnUntil(deadline), admit, refuse });
    });
  }

  /** Ends a request. `answered`: the store answered it, whatever the answer says. */
  leave(answered: boolean): void {
    if (answered) this.#answeredMs = performance.now();
    this.#free += 1;
    while (this.#free > 0) {
      const waiter = this.#waiters.shift();
      if (waiter === undefined) return;
      if (isOver(waiter.turn)) {
        waiter.refuse(refusalOf(waiter.turn, this.#answeredMs));
        continue;
      }
      this.#free -= 1;
      waiter.admit();
    }
  }
}

/** A request that waits to be sent. */
export interface Turn {
  readonly sinceMs: number;
  /** The latest instant at which it may start. */
  readonly untilMs: number;
}

/** Half of the time is reserved for the request: one that starts later would most likely time out. */
export function turnUntil(deadline: Deadline): Turn {
  const sinceMs = performance.now();
  return { sinceMs, untilMs: sinceMs + (deadline - sinceMs) / 2 };
}

export function isOver({ untilMs }: Turn): boolean {
  return performance.now() > untilMs;
}

/**
 * A store that answered meanwhile is available: then this process sends too many requests, and the caller may retry.
 */
export function refusalOf({ sinceMs }: Turn, answeredMs: number): BackendUnavailable {
  return answeredMs >= sinceMs
    ? new BackendUnavailable('This process sends too many requests at once: one was not sent', 'contended')
    : new BackendUnavailable('The store answers none of the requests under way: one was not sent', 'timeout');
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Operations that DynamoDB may answer with `{}`: an answer that lost its body looks the same. They request the consumed
 * capacity, which is free of charge, so that every complete answer has a field.
 */
const MAY_BE_EMPTY: ReadonlySet<Operation> = new Set([
  'DeleteItem',
  'GetItem',
  'PutItem',
  'TransactWriteItems',
  'UpdateItem',
]);

/** The input with a request for a field that proves that the answer is complete. */
export function askForProof<Op extends Operation>(operation: Op, input: Operations[Op][0]): Operations[Op][0] {
  const asks = MAY_BE_EMPTY.has(operation) && !showsNewItem(input);
  return asks ? { ReturnConsumedCapacity: 'TOTAL', ...input } : input;
}

/** The field that a complete answer to this input must have and that this one lacks. null: it is complete. */
export function findMissingPart(operation: Operation, input: object, output: object): string | null {
  const [asked, answer] = [input as Fields, output as Fields];
  if (operation === 'BatchGetItem') return findMissingTable(asked, answer);
  const field = requiredField(operation, asked);
  return isThere(answer[field]) ? null : field;
}

function requiredField(operation: Exclude<Operation, 'BatchGetItem'>, input: Fields): string {
  switch (operation) {
    case 'BatchWriteItem':
      return 'UnprocessedItems';
    case 'CreateTable':
      return 'TableDescription';
    case 'DescribeTable':
      return 'Table';
    case 'Query':
    case 'Scan':
      return input['Select'] === 'COUNT' ? 'Count' : 'Items';
    case 'UpdateTimeToLive':
      return 'TimeToLiveSpecification';
    case 'DeleteItem':
    case 'GetItem':
    case 'PutItem':
    case 'TransactWriteItems':
    case 'UpdateItem':
      return showsNewItem(input) ? 'Attributes' : 'ConsumedCapacity';
  }
}

function showsNewItem(input: object): boolean {
  return (input as Fields)['ReturnValues'] === 'ALL_NEW';
}

/**
 * A table whose items were not found has an empty list. Only a table of which no key was processed may have no list.
 */
function findMissingTable({ RequestItems }: Fields, { Responses, UnprocessedKeys }: Fields): string | null {
  const missing = Object.keys(RequestItems ?? {}).find((table) => {
    const unprocessed = keysOf(UnprocessedKeys, table);
    return !isThere(ownField(Responses, table)) && unprocessed < keysOf(RequestItems, table);
  });
  return missing === undefined ? null : `Responses.${missing}`;
}

function keysOf(requests: unknown, table: string): number {
  const ofTable = ownField(requests, table) as { readonly Keys?: readonly unknown[] } | undefined;
  return ofTable?.Keys?.length ?? 0;
}

/** A table may be called `toString`, which every object inherits. */
function ownField(fields: unknown, name: string): unknown {
  return typeof fields === 'object' && fields !== null && Object.hasOwn(fields, name)
    ? (fields as Fields)[name]
    : undefined;
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null;
}
