import type { ChargeReceipt } from '../../../backend.js';
import type { Limit } from '../../../core/limit.js';
import type { EpochMs } from '../../../core/units.js';
import type { BucketRef, Executor, TransactionAnswer, WriteAnswer } from '../bucket/executor.js';
import type { Creation, RecordWrite, Update } from '../bucket/writes/record-write.js';
import type { Deadline } from '../client/deadline.js';
import { errorOf, type Failure } from '../client/failures.js';
import { readItem, send, type Table } from '../client/requests.js';
import type { Item } from '../client/transport.js';
import { requireOwn } from '../table/foreign-record.js';
import { ATTRIBUTE, decodeShard, type ShardImage } from '../table/items.js';
import { buildReceiptKey, buildShardKey, type ShardKey } from '../table/keys.js';
import { decodeReceipt } from '../table/receipts.js';
import { readBuckets } from '../table/read-buckets.js';
import { renderAction, renderCreate, renderUpdate } from './render-write.js';

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
      // The answer shows a record that this code cannot read.
      return { kind: 'failed', error };
    }
  }

  async writeAll(writes: readonly RecordWrite[], deadline: Deadline): Promise<TransactionAnswer> {
    const TransactItems = writes.map((write) => renderAction(this.#table.name, write));
    const answer = await send(this.#table, 'TransactWriteItems', { TransactItems }, deadline);
    if (answer.ok) return { kind: 'written' };
    return answer.failure.kind === 'cancelled' ? { kind: 'refused' } : notWritten(answer.failure, 'TransactWriteItems');
  }

  async read(key: ShardKey, known: readonly Limit[], deadline: Deadline): Promise<ShardImage | null> {
    const item = await readItem(this.#table, buildShardKey(this.ns, key), deadline);
    return item === undefined ? null : this.#decode(item, known, key);
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
    // The transport returns no answer that lacks the item.
    const item = answer.output.Attributes as Item;
    return { kind: 'written', image: this.#decode(item, known, key) };
  }

  #refused(failure: Failure, known: readonly Limit[], key: ShardKey): WriteAnswer {
    if (failure.kind === 'condition') {
      return { kind: 'refused', image: failure.item === undefined ? null : this.#decode(failure.item, known, key) };
    }
    return notWritten(failure, 'writing a bucket');
  }

  #decode(item: Item, known: readonly Limit[], key: ShardKey): ShardImage {
    // Only a bucket that another client wrote has no write id.
    return decodeShard(item[ATTRIBUTE.writeId] === undefined ? requireOwn(this.#table, item) : item, known, key);
  }
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
