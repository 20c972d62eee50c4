import type { RecordKey } from '../../table/keys.js';
import type { Item } from '../../client/transport.js';
import type { TargetNamespaces } from '../legacy/target-namespaces.js';
import type { LegacyKey } from '../legacy/legacy-key.js';
import type { ScanFilter } from '../scan.js';

/** An old record, and what its key says. */
export interface OldRecord {
  readonly key: LegacyKey;
  readonly item: Item;
}

/** Old records that become one new record together. */
export interface Conversion {
  readonly olds: readonly Item[];
  readonly target: RecordKey;
  /**
   * `copy`: the new record is written long before the old ones go. `switch`: both happen in one transaction, because the
   * new record adds to what is there. An item: the new record takes the place of this old one.
   */
  readonly mode: 'copy' | 'switch' | Item;
  /** The namespace of whose config sequence this takes the next number. */
  readonly sequenceOf?: string;
  /** Old records that become the same new record, and are moved before these. */
  readonly rivals?: readonly RecordKey[];
  /** What is to be written where `target` stands. Throws `Unmappable`. */
  plan(target: Item | undefined): ConversionPlan;
}

export type ConversionPlan =
  /** The new record is what it should be. */
  | { readonly kind: 'same' }
  /** Nothing of the old records is needed. */
  | { readonly kind: 'drop' }
  /** It is missing, or was copied from what the old records were before. */
  | { readonly kind: 'copy'; readonly item: Item }
  /** It is added to, or takes the old one's place: only together with the removal. `strict`: rather too little is left. */
  | { readonly kind: 'merge'; readonly item: Item; readonly strict: boolean };

/** One of the numbered migrations. */
export interface Migration {
  /** Four digits, in the order in which they were made. */
  readonly id: string;
  readonly title: string;
  /** What a scan for its records shows. */
  readonly filter: ScanFilter;
  /** Whether old records with such a key are this migration's. */
  claims(key: Pick<LegacyKey, 'ns' | 'kind'>, homes: TargetNamespaces): boolean;
}
