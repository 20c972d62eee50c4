import type { Int } from '../../../../core/int.js';
import type { ShardImage } from '../../table/items.js';
import type { RecordKey } from '../../table/keys.js';

/** What one write does to one flat record: it lands whole, or its conditions refuse it and nothing changes. */
export type RecordWrite = Creation | Update | Deletion;

/** Never replaces a record that exists. */
export interface Creation {
  readonly kind: 'create';
  readonly ns: string;
  readonly image: ShardImage;
}

export interface Update {
  readonly kind: 'update';
  readonly key: RecordKey;
  readonly steps: readonly RecordStep[];
}

interface Deletion {
  readonly kind: 'delete';
  readonly key: RecordKey;
  readonly steps: readonly RecordStep[];
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

/** Collects the steps of a write. A condition on a missing attribute fails, except `requireAbsent`, `requireAbsentOrAtMost` and `requireOther`. */
export class RecordUpdate {
  readonly #steps: RecordStep[] = [];

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

  of(key: RecordKey): Update {
    return { kind: 'update', key, steps: this.#steps };
  }

  deleteOf(key: RecordKey): Deletion {
    return { kind: 'delete', key, steps: this.#steps };
  }
}
