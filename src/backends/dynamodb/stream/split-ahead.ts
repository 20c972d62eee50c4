import type { EpochMs } from '../../../core/units.js';
import type { Deadline } from '../../../machine-time.js';
import { buildSplit } from '../bucket/writes/write-split.js';
import { errorOf } from '../client/failures.js';
import { isForeign } from '../table/foreign-record.js';
import { createWriteId } from '../bucket/writes/record-write.js';
import { renderAction } from '../expressions/dynamodb-executor.js';
import { ATTRIBUTE, decodeShard } from '../table/items.js';
import { buildShardKey } from '../table/keys.js';
import { Pressure, PRESSURE, type PressureOptions } from '../bucket/pressure.js';
import { readItem, send, type Table } from '../client/requests.js';
import { maySplit, planSplit } from '../bucket/split.js';
import type { BucketChange } from './decode.js';
import { usageOf } from './usage/usage.js';

/** Older changes are ignored: the shard may no longer be busy. */
const FRESH_MS = 60_000;
/** How long the other shards of a bucket follow a split. */
const FOLLOW_MS = 600_000;
const MAX_BUCKETS = 10_000;

interface Watched {
  readonly pressures: Map<number, Pressure>;
  largestAsks: Map<string, number>;
  asksSinceMs: EpochMs;
  /** The shard count that a split led to, and when; null: no split was seen, or the shards merged since. */
  target: { readonly count: number; readonly atMs: EpochMs } | null;
}

/**
 * Splits busy shards by the same rule as the writing processes, but sees the writes of all of them. Also splits the
 * other shards of a bucket after one was split, so that each gets its share of the traffic.
 */
export class SplitAhead {
  readonly #table: Table;
  readonly #options: PressureOptions;
  /** In the order of their last change. */
  readonly #buckets = new Map<string, Watched>();

  constructor(table: Table, options: PressureOptions = PRESSURE) {
    this.#table = table;
    this.#options = options;
  }

  /** Returns how many shards were split. Rejects only when the store is unavailable. */
  async splitBusy(changes: readonly BucketChange[], nowMs: EpochMs, deadline: Deadline): Promise<number> {
    const wanted = new Map<string, BucketChange>();
    for (const change of changes) {
      const { PK } = buildShardKey(change.ns, change.key);
      if (nowMs - change.atMs <= FRESH_MS && this.#observe(change)) wanted.set(PK, change);
    }
    let splits = 0;
    for (const change of wanted.values()) if (await this.#split(change, nowMs, deadline)) splits += 1;
    return splits;
  }

  /** Whether the shard should be split. */
  #observe({ ns, key, atMs, before, after, item }: BucketChange): boolean {
    const watched = this.#watch(ns, key);
    if (after === null) {
      watched.pressures.delete(key.shard);
      return false;
    }
    if (before !== null && after.shardCount < before.shardCount) watched.target = null;
    if (before !== null && after.shardCount > before.shardCount) {
      watched.target = { count: Math.max(after.shardCount, watched.target?.count ?? 0), atMs };
    }
    noteAsks(watched, { before, after }, atMs);
    let pressure = watched.pressures.get(key.shard);
    if (pressure === undefined) watched.pressures.set(key.shard, (pressure = new Pressure(this.#options)));
    pressure.observe({ writeUnits: Number(item[ATTRIBUTE.writeUnits]?.N ?? 0), shardCount: after.shardCount }, atMs);
    const { target } = watched;
    if (target !== null && atMs - target.atMs <= FOLLOW_MS && after.shardCount < target.count) return true;
    return pressure.wantsSplit(atMs);
  }

  #watch(ns: string, { entityId, resource }: BucketChange['key']): Watched {
    const id = `${ns}/${entityId}#${resource}`;
    const watched = this.#buckets.get(id) ?? {
      pressures: new Map(),
      largestAsks: new Map(),
      asksSinceMs: 0,
      target: null,
    };
    this.#buckets.delete(id);
    this.#buckets.set(id, watched);
    if (this.#buckets.size > MAX_BUCKETS) {
      for (const oldest of this.#buckets.keys()) {
        this.#buckets.delete(oldest);
        break;
      }
    }
    return watched;
  }

  /** Reads the shard first: the stream is slightly behind. */
  async #split({ ns, key, after }: BucketChange, nowMs: EpochMs, deadline: Deadline): Promise<boolean> {
    const { pressures, largestAsks } = this.#watch(ns, key);
    pressures.get(key.shard)?.reset();
    const item = await readItem(this.#table, buildShardKey(ns, key), deadline);
    if (item === undefined || isForeign(item)) return false;
    const image = decodeShard(item, []);
    // Another process has split it.
    if (image.shardCount !== after?.shardCount) return false;
    if (!maySplit(image, (limit) => largestAsks.get(limit) ?? 0)) return false;
    const writeId = createWriteId(nowMs, this.#table.random);
    const writes = buildSplit(ns, image, planSplit(image, nowMs), writeId);
    const TransactItems = writes.map((write) => renderAction(this.#table.name, write));
    const answer = await send(this.#table, 'TransactWriteItems', { TransactItems }, deadline);
    if (answer.ok) return true;
    // The balance moved out of the split's bounds. If the shard stays busy, the next batch tries again.
    if (answer.failure.kind === 'cancelled' || answer.failure.kind === 'condition') return false;
    throw errorOf(answer.failure, 'TransactWriteItems');
  }
}

/** A write may serve many asks; each then counts as their mean. */
function noteAsks(watched: Watched, change: Pick<BucketChange, 'before' | 'after'>, atMs: EpochMs): void {
  if (atMs - watched.asksSinceMs >= FRESH_MS) {
    watched.largestAsks = new Map();
    watched.asksSinceMs = atMs;
  }
  const { consumedMilli, acquires } = usageOf(change);
  if (acquires <= 0) return;
  for (const [limit, milli] of consumedMilli) {
    const ask = Math.ceil(Number(milli) / acquires);
    if (ask > (watched.largestAsks.get(limit) ?? 0)) watched.largestAsks.set(limit, ask);
  }
}
