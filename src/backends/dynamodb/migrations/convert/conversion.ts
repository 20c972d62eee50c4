import type { RecordKey } from '../../table/keys.js';
import type { Item } from '../../client/transport.js';
import type { TargetNamespaces } from '../legacy/target-namespaces.js';
import type { DisabledLevels } from '../legacy/disabled-levels.js';
import type { DroppableSetting } from '../legacy/settings.js';

/** What converting an old record depends on. */
export interface ConversionContext {
  readonly migration: string;
  readonly namespaces: TargetNamespaces;
  readonly disabled: DisabledLevels;
  /** The settings that the operator chose to drop. */
  readonly drop: ReadonlySet<DroppableSetting>;
}

/** Old records that become one new record together. */
export interface Conversion {
  readonly olds: readonly Item[];
  readonly target: RecordKey;
  /**
   * `copy`: the new record is written before the old records are removed. `switch`: one transaction does both, because
   * the new record adds to an existing one. An item: the new record replaces this old record under the same key.
   */
  readonly mode: 'copy' | 'switch' | Item;
  /** The namespace whose config sequence provides the new record's version. */
  readonly sequenceOf?: string;
  /** Old records that become the same new record and are converted before these. */
  readonly rivals?: readonly RecordKey[];
  /** What to write, given the current `target`. Throws `Unmappable`. */
  plan(target: Item | undefined): ConversionPlan;
}

export type ConversionPlan =
  /** The new record is up to date. */
  | { readonly kind: 'same' }
  /** The old records have nothing to keep. */
  | { readonly kind: 'drop' }
  /** The new record is missing, or is a copy of an earlier state of the old records. */
  | { readonly kind: 'copy'; readonly item: Item }
  /**
   * The new record adds to `target` or replaces an old record: only in one transaction with the removal. `strict`: the
   * result may have too few tokens, never too many.
   */
  | { readonly kind: 'merge'; readonly item: Item; readonly strict: boolean };
