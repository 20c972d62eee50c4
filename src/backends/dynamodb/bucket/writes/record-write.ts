import type { ChargeReceipt } from '../../../../backend.js';
import { buildLeaseId, encodeRandom } from '../../../../core/identifiers.js';
import type { Int } from '../../../../core/int.js';
import type { EpochMs } from '../../../../core/units.js';
import { ATTRIBUTE, type ShardImage } from '../../table/items.js';
import type { ShardKey } from '../../table/keys.js';

/** What one write does to one flat record: it lands whole, or its conditions refuse it and nothing changes. */
export type RecordWrite = Creation | Update | Deletion | ReceiptWrite;

/** Never replaces a record that exists. */
export interface Creation {
  readonly kind: 'create';
  readonly ns: string;
  readonly image: ShardImage;
}

/** Refused if the receipt exists and has not ended at `nowMs`. */
export interface ReceiptWrite {
  readonly kind: 'receipt';
  readonly ns: string;
  readonly receipt: ChargeReceipt;
  readonly endMs: EpochMs;
  readonly nowMs: EpochMs;
}

export interface Update {
  readonly kind: 'update';
  readonly ns: string;
  readonly key: ShardKey;
  readonly steps: readonly (RecordStep | ListStep)[];
}

interface Deletion {
  readonly kind: 'delete';
  readonly ns: string;
  readonly key: ShardKey;
  readonly steps: readonly (RecordStep | ListStep)[];
}

export type RecordValue = string | Int;

/** One condition on an attribute, or one change of it. Conditions apply to the record as it was before the write. */
export type RecordStep =
  | { readonly op: 'equal' | 'other' | 'set'; readonly attribute: string; readonly value: RecordValue }
  | {
      readonly op: 'at-least' | 'at-most' | 'absent-or-at-most' | 'add';
      readonly attribute: string;
      readonly value: Int;
    }
  | { readonly op: 'absent' | 'remove'; readonly attribute: string; readonly value: null };

/** Puts the shard on the sweep list, by which the reconciler finds it, or takes it off. The executor knows how. */
export interface ListStep {
  readonly op: 'list-for-sweep' | 'unlist';
}

/**
 * Collects the steps of a write. A condition on a missing attribute fails, except `requireAbsent`,
 * `requireAbsentOrAtMost` and `requireOther`.
 */
export class RecordUpdate {
  readonly #steps: (RecordStep | ListStep)[] = [];

  set(attribute: string, value: RecordValue): this {
    this.#steps.push({ op: 'set', attribute, value });
    return this;
  }

  /** A missing attribute counts as 0. Adding 0 is left out. */
  add(attribute: string, value: Int): this {
    if (value !== 0) this.#steps.push({ op: 'add', attribute, value });
    return this;
  }

  remove(attribute: string): this {
    this.#steps.push({ op: 'remove', attribute, value: null });
    return this;
  }

  requireEqual(attribute: string, value: RecordValue): this {
    this.#steps.push({ op: 'equal', attribute, value });
    return this;
  }

  requireOther(attribute: string, value: RecordValue): this {
    this.#steps.push({ op: 'other', attribute, value });
    return this;
  }

  /** null: no bound on that side. */
  requireWithin(attribute: string, least: Int | null, most: Int | null): this {
    if (least !== null) this.#steps.push({ op: 'at-least', attribute, value: least });
    if (most !== null) this.#steps.push({ op: 'at-most', attribute, value: most });
    return this;
  }

  requireAbsentOrAtMost(attribute: string, most: Int): this {
    this.#steps.push({ op: 'absent-or-at-most', attribute, value: most });
    return this;
  }

  requireAbsent(attribute: string): this {
    this.#steps.push({ op: 'absent', attribute, value: null });
    return this;
  }

  listForSweep(): this {
    this.#steps.push({ op: 'list-for-sweep' });
    return this;
  }

  unlist(): this {
    this.#steps.push({ op: 'unlist' });
    return this;
  }

  of(ns: string, key: ShardKey): Update {
    return { kind: 'update', ns, key, steps: this.#steps };
  }

  deleteOf(ns: string, key: ShardKey): Deletion {
    return { kind: 'delete', ns, key, steps: this.#steps };
  }
}

const BYTES_PER_UNIT = 1024;

/** The write units that an item of this size costs: one for each started KB. */
export function writeUnits(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / BYTES_PER_UNIT));
}

/** The time of the write and 36 random bits. Usage is counted in the window of this time. */
export function createWriteId(nowMs: EpochMs, random: () => number): string {
  return buildLeaseId(nowMs, random()) + encodeRandom(random());
}

/**
 * The id of a write, and the ids of earlier writes that may have landed. The write must be refused if one of them did.
 */
export interface WriteIds {
  readonly own: string;
  readonly unanswered: readonly string[];
}

/**
 * Starts a write to an existing shard: under the base of the image, so that the rate parameters are those of the image,
 * and never twice under one id. Counts its own write units.
 */
export function startShardUpdate(image: ShardImage, { own, unanswered }: WriteIds): RecordUpdate {
  const update = new RecordUpdate()
    .requireEqual(ATTRIBUTE.base, image.baseMs)
    .set(ATTRIBUTE.writeId, own)
    .add(ATTRIBUTE.writeUnits, writeUnits(image.bytes));
  update.requireOther(ATTRIBUTE.writeId, own);
  for (const id of unanswered) update.requireOther(ATTRIBUTE.writeId, id);
  return update;
}

/** Never lowers the ttl, and adds none: a debt or a holder that the image lacks may need a longer one. */
export function raiseTtl(update: RecordUpdate, ttlSec: number): void {
  update.requireWithin(ATTRIBUTE.ttl, null, ttlSec).set(ATTRIBUTE.ttl, ttlSec);
}
