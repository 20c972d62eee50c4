import type { Executor, TransactionAnswer, WriteAnswer } from '../src/backends/dynamodb/bucket/executor.js';
import type { Creation, RecordWrite, Update } from '../src/backends/dynamodb/bucket/writes/record-write.js';
import type { ShardImage } from '../src/backends/dynamodb/table/items.js';
import { buildShardKey } from '../src/backends/dynamodb/table/keys.js';
import { BackendUnavailable } from '../src/core/errors.js';
import { FlatRecord } from '../tests/support/dynamodb/shard/flat-record.js';
import type { VirtualTime } from './virtual-time.js';

/** One way takes half of 5 ms, give or take 20 %. */
const ONE_WAY_MS = { least: 2, most: 3 };
/** What DynamoDB accepts on one key. A second's worth may come at once. */
const UNITS_PER_SEC = 1_000;

/** A store of flat records with the distance and the write rate of DynamoDB, in virtual time. Reads are not limited. */
export class SimulatedStore {
  /** All writes that reached the store; those that a condition refused; those that exceeded the rate of their key. */
  readonly counts = { writes: 0, refused: 0, throttled: 0 };
  readonly #time: VirtualTime;
  readonly #random: () => number;
  readonly #records = new Map<string, FlatRecord>();
  readonly #budgets = new Map<string, { units: number; atMs: number }>();

  constructor(time: VirtualTime, random: () => number) {
    this.#time = time;
    this.#random = random;
  }

  get shardCount(): number {
    return this.#records.size;
  }

  /** The way of one process to the store. */
  executor(ns: string): Executor {
    const keyOf = (key: ShardImage['key']): string => buildShardKey(ns, key).PK;
    return {
      ns,
      random: this.#random,
      write: async (key, write) => this.#remote(() => this.#write(keyOf(key), write)),
      writeAll: async (writes) => this.#remote(() => this.#writeAll(writes, ns)),
      read: async (key) => this.#remote(() => this.#records.get(keyOf(key))?.image ?? null),
      readReceipt: async () => Promise.reject(new Error('No part of the simulation charges with an id')),
      readBuckets: async () => Promise.reject(new Error('No part of the simulation reads whole buckets')),
    };
  }

  async #remote<T>(work: () => T): Promise<T> {
    await this.#time.sleep(this.#oneWayMs());
    const answer = work();
    await this.#time.sleep(this.#oneWayMs());
    return answer;
  }

  #oneWayMs(): number {
    return ONE_WAY_MS.least + this.#random() * (ONE_WAY_MS.most - ONE_WAY_MS.least);
  }

  #write(pk: string, write: Creation | Update): WriteAnswer {
    this.counts.writes += 1;
    if (!this.#hasBudget(pk)) {
      this.counts.throttled += 1;
      return {
        kind: 'busy',
        cause: 'throttled',
        hotKey: true,
        error: new BackendUnavailable('The simulated key is too busy', 'throttled'),
      };
    }
    const isWritten = this.#apply(pk, write);
    const image = this.#records.get(pk)?.image ?? null;
    if (isWritten && image !== null) return { kind: 'written', image };
    this.counts.refused += 1;
    return { kind: 'refused', image };
  }

  #writeAll(writes: readonly RecordWrite[], ns: string): TransactionAnswer {
    const before = [...this.#records].map(([pk, { image }]) => [pk, image] as const);
    this.counts.writes += writes.length;
    const pkOf = (write: Creation | Update): string =>
      buildShardKey(ns, write.kind === 'create' ? write.image.key : write.key).PK;
    // No part of the simulation merges shards or charges with an id.
    const lands = (write: RecordWrite): boolean =>
      (write.kind === 'create' || write.kind === 'update') && this.#apply(pkOf(write), write);
    if (writes.every(lands)) return { kind: 'written' };
    this.#records.clear();
    for (const [pk, image] of before) if (image !== null) this.#records.set(pk, new FlatRecord(image));
    this.counts.refused += writes.length;
    return { kind: 'refused' };
  }

  /** False: a condition refused the write. */
  #apply(pk: string, write: Creation | Update): boolean {
    const record = this.#records.get(pk);
    if (record !== undefined) return record.write(write);
    if (write.kind !== 'create') return false;
    this.#records.set(pk, new FlatRecord(write.image));
    return true;
  }

  #hasBudget(pk: string): boolean {
    const { nowMs } = this.#time;
    const { units, atMs } = this.#budgets.get(pk) ?? { units: UNITS_PER_SEC, atMs: nowMs };
    const refilled = Math.min(UNITS_PER_SEC, units + ((nowMs - atMs) / 1_000) * UNITS_PER_SEC);
    const left = refilled - 1;
    this.#budgets.set(pk, { units: left < 0 ? refilled : left, atMs: nowMs });
    return left >= 0;
  }
}
