import type { ChargeReceipt } from '../../../backend.js';
import { BackendUnavailable } from '../../../core/errors.js';
import type { Limit } from '../../../core/limit.js';
import type { EpochMs } from '../../../core/units.js';
import type { BucketRef, Executor, TransactionAnswer, WriteAnswer } from '../bucket/executor.js';
import type {
  Creation,
  ListStep,
  RecordStep,
  RecordValue,
  RecordWrite,
  Update,
} from '../bucket/writes/record-write.js';
import type { Deadline } from '../../../machine-time.js';
import { causeOfCancel, errorOf, type Failure } from '../client/failures.js';
import { readItem, send, type Table } from '../client/requests.js';
import type { AttributeValue, Item } from '../client/transport.js';
import { requireOwn } from '../table/foreign-record.js';
import { ATTRIBUTE, decodeShard, type ShardImage } from '../table/items.js';
import { buildReceiptKey, buildShardKey, keyItem, type ShardKey, SWEEP_ATTRIBUTES, sweepKeys } from '../table/keys.js';
import { decodeReceipt, encodeReceipt, receiptCondition } from '../table/receipts.js';
import { readBuckets } from '../table/read-buckets.js';
import type { PutItemInput, TransactWriteItem, UpdateItemInput } from '@aws-sdk/client-dynamodb';
import { Expression, type ExpressionInput, requireUpdate } from './expression.js';
import { buildShardItem } from './shard-item.js';

/** Sends the writes of one namespace to a DynamoDB table. */
export class DynamoDBExecutor implements Executor {
  readonly ns: string;
  readonly #table: Table;

  constructor(table: Table, ns: string) {
    this.#table = table;
    this.ns = ns;
  }

  get random(): () => number {
    return this.#table.random;
  }

  async write(
    key: ShardKey,
    write: Creation | Update,
    known: readonly Limit[],
    deadline: Deadline,
  ): Promise<WriteAnswer> {
    try {
      return write.kind === 'create'
        ? await this.#create(write, known, deadline)
        : await this.#update(key, write, known, deadline);
    } catch (error) {
      // The record that refused the write is one that this code cannot read.
      return { kind: 'failed', error };
    }
  }

  async writeAll(writes: readonly RecordWrite[], deadline: Deadline): Promise<TransactionAnswer> {
    const TransactItems = writes.map((write) => renderAction(this.#table.name, write));
    const answer = await send(this.#table, 'TransactWriteItems', { TransactItems }, deadline);
    if (answer.ok) return { kind: 'written' };
    const what = 'TransactWriteItems';
    const { failure } = answer;
    const cause = failure.kind === 'cancelled' ? causeOfCancel(failure.reasons, what, this.#table.name) : failure;
    return cause.kind === 'cancelled' ? { kind: 'refused' } : notWritten(cause, what);
  }

  async read(key: ShardKey, known: readonly Limit[], deadline: Deadline): Promise<ShardImage | null> {
    const item = await readItem(this.#table, buildShardKey(this.ns, key), deadline);
    if (item === undefined) return null;
    if (!this.#isAt(key, item)) throw answerToOther();
    return this.#decode(item, known, key);
  }

  async readReceipt(receipt: ChargeReceipt, nowMs: EpochMs, deadline: Deadline): Promise<string | null> {
    return decodeReceipt(await readItem(this.#table, buildReceiptKey(this.ns, receipt), deadline), nowMs);
  }

  async readBuckets(refs: readonly BucketRef[], deadline: Deadline): Promise<readonly (readonly ShardImage[])[]> {
    return readBuckets(this.#table, this.ns, refs, deadline);
  }

  async #create(write: Creation, known: readonly Limit[], deadline: Deadline): Promise<WriteAnswer> {
    const answer = await send(this.#table, 'PutItem', renderCreate(this.#table.name, write), deadline);
    // A put returns nothing, and the record is what was put.
    if (answer.ok) return { kind: 'written', image: write.image };
    return this.#refused(answer.failure, known, write.image.key);
  }

  async #update(key: ShardKey, write: Update, known: readonly Limit[], deadline: Deadline): Promise<WriteAnswer> {
    const answer = await send(this.#table, 'UpdateItem', renderUpdate(this.#table.name, write), deadline);
    if (!answer.ok) return this.#refused(answer.failure, known, key);
    try {
      // The transport returns no answer that lacks the item.
      const image = this.#decode(answer.output.Attributes as Item, known, key);
      const isOther = (ownId(write) ?? image.writeId) !== image.writeId;
      return isOther ? { kind: 'no-answer', unsent: false, error: answerToOther() } : { kind: 'written', image };
    } catch (error) {
      // The write has landed in a record that this code cannot read. To its entries it is a write without an answer.
      return { kind: 'no-answer', unsent: false, error };
    }
  }

  #refused(failure: Failure, known: readonly Limit[], key: ShardKey): WriteAnswer {
    if (failure.kind === 'condition') {
      const { item } = failure;
      if (item === undefined) return { kind: 'refused', image: null };
      if (!this.#isAt(key, item)) return { kind: 'no-answer', unsent: false, error: answerToOther() };
      return { kind: 'refused', image: this.#decode(item, known, key) };
    }
    return notWritten(failure, 'writing a bucket');
  }

  #isAt(key: ShardKey, item: Item): boolean {
    return item['PK']?.S === encodedKey(this.ns, key)['PK']?.S;
  }

  #decode(item: Item, known: readonly Limit[], key: ShardKey): ShardImage {
    // Only a bucket that another client wrote has no write id.
    return decodeShard(item[ATTRIBUTE.writeId] === undefined ? requireOwn(this.#table, item) : item, known, key);
  }
}

/** The id that the write gives the record. undefined: it keeps the id. */
function ownId({ steps }: Update): RecordValue | undefined {
  for (const step of steps) if (step.op === 'set' && step.attribute === ATTRIBUTE.writeId) return step.value;
  return undefined;
}

/**
 * A server or proxy that answers one request twice may do so while the next request is under way, and HTTP does not say
 * which request an answer is for.
 */
function answerToOther(): BackendUnavailable {
  return new BackendUnavailable('The answer of DynamoDB is for another request', 'server');
}

function notWritten(
  failure: Failure,
  what: string,
): Exclude<TransactionAnswer, { readonly kind: 'written' | 'refused' }> {
  switch (failure.kind) {
    case 'conflict':
      return { kind: 'busy', cause: 'conflict', hotKey: false, error: failure.error };
    case 'throttled':
      return { kind: 'busy', cause: 'throttled', hotKey: failure.hotKey, error: failure.error };
    case 'lost':
      return { kind: 'no-answer', unsent: failure.unsent === true, error: failure.error };
    case 'condition':
    case 'cancelled':
    case 'unreached':
    case 'fatal':
      return { kind: 'failed', error: errorOf(failure, what) };
  }
}

/** An update that returns the whole item: the new one, or the one that refused it. */
export function renderUpdate(tableName: string, { ns, key, steps }: Update): UpdateItemInput {
  return {
    TableName: tableName,
    Key: encodedKey(ns, key),
    ...renderSteps(withIndexKeys(ns, key, steps)),
    ReturnValues: 'ALL_NEW',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  };
}

interface EncodedKey {
  readonly ns: string;
  readonly item: Item;
}

/** A shard of a process has one key object, and so have the images that are decoded for it. */
const ENCODED_KEYS = new WeakMap<ShardKey, EncodedKey>();

/** The key in the table, built once for each shard of a process. */
function encodedKey(ns: string, key: ShardKey): Item {
  let encoded = ENCODED_KEYS.get(key);
  if (encoded?.ns !== ns) ENCODED_KEYS.set(key, (encoded = { ns, item: keyItem(buildShardKey(ns, key)) }));
  return encoded.item;
}

/** A put that returns the item that refused it. */
export function renderCreate(tableName: string, { ns, image }: Creation): PutItemInput {
  return {
    TableName: tableName,
    Item: buildShardItem(ns, image),
    ConditionExpression: 'attribute_not_exists(PK)',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  };
}

/** One action of a transaction. */
export function renderAction(tableName: string, write: RecordWrite): TransactWriteItem {
  switch (write.kind) {
    case 'create':
      return { Put: renderCreate(tableName, write) };
    case 'update':
      return {
        Update: {
          TableName: tableName,
          Key: encodedKey(write.ns, write.key),
          ...requireUpdate(renderSteps(withIndexKeys(write.ns, write.key, write.steps))),
        },
      };
    case 'receipt': {
      const { ns, receipt, endMs, nowMs } = write;
      return {
        Put: { TableName: tableName, Item: encodeReceipt(ns, receipt, endMs), ...receiptCondition(nowMs) },
      };
    }
    case 'delete': {
      const { ns, key, steps } = write;
      const input = renderSteps(withIndexKeys(ns, key, steps));
      return { Delete: { TableName: tableName, Key: encodedKey(ns, key), ...input } };
    }
  }
}

/** The steps with the keys of the index that the sweep list is. Most writes do not touch it, and keep their list. */
function withIndexKeys(ns: string, key: ShardKey, steps: readonly (RecordStep | ListStep)[]): readonly RecordStep[] {
  if (steps.every(isPlain)) return steps;
  return steps.flatMap((step): readonly RecordStep[] => {
    if (isPlain(step)) return [step];
    return step.op === 'unlist'
      ? SWEEP_ATTRIBUTES.map((attribute) => ({ op: 'remove', attribute, value: null }))
      : Object.entries(sweepKeys(ns, key)).map(([attribute, value]) => ({ op: 'set', attribute, value }));
  });
}

function isPlain(step: RecordStep | ListStep): step is RecordStep {
  return step.op !== 'list-for-sweep' && step.op !== 'unlist';
}

/** A write of many holders has a shape of its own, which would only evict those of the common writes. */
const MAX_CACHED_STEPS = 40;

/** Most writes of a process have one of a few shapes: then the text is cached, and only names and values are new. */
export function renderSteps(steps: readonly RecordStep[]): ExpressionInput {
  if (steps.length > MAX_CACHED_STEPS) return renderAnew(steps);
  const holders: string[] = [];
  const values: RecordValue[] = [];
  let shape = emptyShape();
  for (const { op, attribute, value } of steps) {
    if (op === 'add' && value === 0) continue;
    const name = attribute.startsWith('h_') ? positionIn(holders, attribute) : attribute;
    shape = shape.with(op, name, value === null ? null : positionIn(values, value));
  }
  shape.text ??= textOf(renderAnew(steps), holders);
  return inputOf(shape.text, holders, values);
}

/** Adds the value unless it is there. An `Int` has one form, so equal numbers are identical. */
function positionIn<T>(known: T[], value: T): number {
  for (let at = 0; at < known.length; at++) if (known[at] === value) return at;
  return known.push(value) - 1;
}

/** Renders without the cache. */
export function renderAnew(steps: readonly RecordStep[]): ExpressionInput {
  const expression = new Expression();
  for (const step of steps) render(expression, step);
  return expression.build();
}

function render(expression: Expression, { op, attribute, value }: RecordStep): void {
  switch (op) {
    case 'equal':
      expression.requireEqual(attribute, attributeValue(value));
      break;
    case 'other':
      expression.requireOther(attribute, attributeValue(value));
      break;
    case 'at-least':
      expression.requireWithin(attribute, value, null);
      break;
    case 'at-most':
      expression.requireWithin(attribute, null, value);
      break;
    case 'absent-or-at-most':
      expression.requireAbsentOrAtMost(attribute, value);
      break;
    case 'absent':
      expression.requireAbsent(attribute);
      break;
    case 'set':
      expression.set(attribute, attributeValue(value));
      break;
    case 'add':
      expression.add(attribute, value);
      break;
    case 'remove':
      expression.remove(attribute);
      break;
  }
}

function attributeValue(value: RecordValue): AttributeValue {
  return typeof value === 'string' ? { S: value } : { N: String(value) };
}

/** The part of a request that depends only on its shape. */
interface ExpressionText {
  readonly UpdateExpression: string | undefined;
  readonly ConditionExpression: string;
  /** Each alias with the name that it is for. A number: the position of a holder, whose name differs with each lease. */
  readonly names: readonly (readonly [alias: string, name: string | number])[];
  /** The aliases of the distinct values, in the order of their first use. */
  readonly values: readonly string[];
}

function textOf(rendered: ExpressionInput, holders: readonly string[]): ExpressionText {
  const { UpdateExpression, ConditionExpression, ExpressionAttributeNames = {} } = rendered;
  const names = Object.entries(ExpressionAttributeNames).map(([alias, name]) => {
    const holder = holders.indexOf(name);
    return [alias, holder < 0 ? name : holder] as const;
  });
  const values = Object.keys(rendered.ExpressionAttributeValues ?? {});
  return { UpdateExpression, ConditionExpression, names, values };
}

/** The same bytes as `renderAnew` makes. */
function inputOf(text: ExpressionText, holders: readonly string[], values: readonly RecordValue[]): ExpressionInput {
  const { UpdateExpression, ConditionExpression } = text;
  const input: { -readonly [Part in keyof ExpressionInput]: ExpressionInput[Part] } = { ConditionExpression };
  if (UpdateExpression !== undefined) input.UpdateExpression = UpdateExpression;
  if (text.names.length > 0) {
    const names: Record<string, string> = (input.ExpressionAttributeNames = {});
    for (const [alias, name] of text.names) names[alias] = typeof name === 'string' ? name : (holders[name] ?? '');
  }
  if (values.length > 0) {
    const used: Record<string, AttributeValue> = (input.ExpressionAttributeValues = {});
    for (let at = 0; at < values.length; at++) used[text.values[at] ?? ''] = attributeValue(values[at] ?? '');
  }
  return input;
}

const MAX_NODES = 5_000;

/**
 * The shape of the first steps of a write: their operations, names, and which of their values are equal. Writes of one
 * shape have the same text and differ in their values. The nodes form a tree, so that finding a shape builds no key.
 */
class ExpressionShape {
  /** Set once a write of exactly these steps was rendered. */
  text: ExpressionText | null = null;
  readonly #op: RecordStep['op'] | null;
  readonly #value: number | null;
  readonly #longer = new Map<string | number, ExpressionShape[]>();

  constructor(op: RecordStep['op'] | null, value: number | null) {
    this.#op = op;
    this.#value = value;
  }

  /** The shape with one more step. `name`: the attribute, or the position of a holder. `value`: the position of its value. */
  with(op: RecordStep['op'], name: string | number, value: number | null): ExpressionShape {
    let known = this.#longer.get(name);
    if (known === undefined) this.#longer.set(name, (known = []));
    for (const shape of known) if (shape.#op === op && shape.#value === value) return shape;
    const added = new ExpressionShape(op, value);
    known.push(added);
    nodeCount += 1;
    return added;
  }
}

let nodeCount = 0;
let none = new ExpressionShape(null, null);

/** The shape without steps. When the cache is full, it starts anew. */
function emptyShape(): ExpressionShape {
  if (nodeCount > MAX_NODES) {
    none = new ExpressionShape(null, null);
    nodeCount = 0;
  }
  return none;
}
