import type { LevelAnswer, LevelAsk, LevelChange, LevelOperation } from '../../../../backend.js';
import type { Amount } from '../../../../core/bucket/decide.js';
import { deltasOf } from '../../../../core/bucket/holder-rules.js';
import type { ClosedState, PortablePart } from '../../../../core/bucket/portable.js';
import type { EpochMs } from '../../../../core/units.js';

/** One request of a caller to one shard. All entries that are waiting go into one write. */
export type Entry = AskEntry | ChangeEntry | OperationEntry | ExtendEntry;

export interface AskEntry {
  readonly kind: 'ask';
  readonly level: LevelAsk;
  readonly leaseId: string | null;
  readonly nowMs: EpochMs;
  /** False for the second and further parts of one grant: a grant is counted once. */
  readonly counts: boolean;
  /** Shadows that are short on one of several shards go on. Left out: they are denied, because another may have room. */
  readonly passesShadows?: true;
  /** All its limits are shadows, so no limit can refuse it, and other writers must not: it is tried until its deadline. */
  readonly onlyShadows?: true;
  /**
   * Its shadows are counted and not taken, without a condition: other writers won the races for them too often. So they
   * show as exceeded, because with these limits the ask would have been refused as contended.
   */
  readonly shadowsAside?: true;
  /** Takes nothing: settles and reclaims where needed, and answers whether the ask could be granted. */
  readonly dryRun?: boolean;
}

export interface ChangeEntry {
  readonly kind: 'change';
  readonly level: LevelChange;
  readonly leaseId: string;
  readonly nowMs: EpochMs;
  /** The grant is undone, so it must not count as one. */
  readonly uncounts: boolean;
  /** What the grant counted of shadows without taking it. Taken out of the counters if the grant is uncounted. */
  readonly untaken?: readonly Amount[];
  /** Changes nothing if the holder is missing: without it the grant was never written. */
  readonly onlyIfHeld?: true;
  /** With `onlyIfHeld`: exactly this holder. Another lease may have drawn the same id. */
  readonly holderText?: string;
  /**
   * A write that requires this base (null: that the item does not exist) may still be under way. Once this change is
   * done, that write must not be able to land.
   */
  readonly fences?: EpochMs | null | undefined;
}

/** An operation of a portable lease. */
export interface OperationEntry {
  readonly kind: 'operation';
  readonly level: LevelOperation;
  readonly leaseId: string;
  readonly nowMs: EpochMs;
}

/** Writes that would have granted an ask got no answer. */
export interface Doubt {
  /** The base that the last write requires. null: it creates the item. Bases only grow, so no earlier write can land after it. */
  readonly baseMs: EpochMs | null;
  /** What the writes take, and the holder that shows it. The last write comes last. */
  readonly grants: readonly DoubtfulGrant[];
}

export interface DoubtfulGrant {
  readonly holderText: string;
  readonly answer: LevelAnswer;
}

export interface ExtendEntry {
  readonly kind: 'extend';
  readonly leaseId: string;
  readonly expiresAtMs: EpochMs;
  readonly nowMs: EpochMs;
}

/**
 * An ask that was not granted. `inDoubt`: a write under its lease id may have landed, and is revoked, so the id must not be
 * used again.
 */
type Refusal =
  /** `remembered`: denied from the deny cache, without a request. */
  | { readonly kind: 'denied'; readonly answer: LevelAnswer; readonly remembered: boolean }
  /**
   * The caller's config is older and takes a rate where the limit now has slots, so its ask brings no holder for them.
   */
  | { readonly kind: 'unheld'; readonly answer: LevelAnswer }
  /** The shard has as many holders as it may have beside that of another lease that no slot bounds. */
  | { readonly kind: 'crowded'; readonly answer: LevelAnswer }
  /** Too many writers at once. */
  | { readonly kind: 'contended' };

export type EntryResult =
  | { readonly kind: 'granted'; readonly answer: LevelAnswer }
  | (Refusal & { readonly inDoubt?: true })
  | { readonly kind: 'id-taken' }
  /** The shard does not exist. The entry belongs to the shard that it would be split from. */
  | { readonly kind: 'no-shard' }
  | { readonly kind: 'done'; readonly holderLost: boolean }
  /** A write with this refund got no answer, so a later write leaves it out: it could count twice. */
  | { readonly kind: 'refund-left-out' }
  | { readonly kind: 'extended'; readonly found: boolean }
  /** The account of the portable lease on this shard now. null: its holder no longer exists. */
  | { readonly kind: 'operated'; readonly part: PortablePart | null }
  /** The portable lease has ended, which contradicts the entry. */
  | { readonly kind: 'ended'; readonly state: ClosedState; readonly part: PortablePart };

/** The results that an entry of this kind can have. */
export type ResultOf<E extends Entry> = Extract<
  EntryResult,
  {
    readonly kind: E extends AskEntry
      ? 'granted' | 'denied' | 'unheld' | 'id-taken' | 'crowded' | 'contended'
      : E extends ChangeEntry
        ? 'done'
        : E extends OperationEntry
          ? 'operated' | 'ended'
          : 'extended' | 'ended' | 'no-shard';
  }
>;

/** Whether a write of an ask without a grant may have landed. Its revocation could remove the holder of a repeated ask. */
export function mayHaveLanded(result: object): boolean {
  return 'inDoubt' in result && result.inDoubt === true;
}

/** The result of an ask of which a write got no answer. */
export function asDoubtful(result: EntryResult): EntryResult {
  return isRefusal(result) ? { ...result, inDoubt: true } : result;
}

function isRefusal(result: EntryResult): result is Refusal {
  const { kind } = result;
  return kind === 'denied' || kind === 'unheld' || kind === 'crowded' || kind === 'contended';
}

export function refundsRates(level: LevelChange): boolean {
  return deltasOf(level).some(({ milli }) => milli < 0);
}

/** The entries with the shadows of their asks put aside; the same entries if there are none. Asks of shadows only stay. */
export function withShadowsAside(entries: readonly Entry[]): readonly Entry[] {
  const hasShadows = (entry: Entry): entry is AskEntry =>
    entry.kind === 'ask' &&
    entry.onlyShadows !== true &&
    entry.shadowsAside !== true &&
    entry.level.asks.some(({ shadow }) => shadow === true);
  if (!entries.some(hasShadows)) return entries;
  return entries.map((entry) => (hasShadows(entry) ? { ...entry, shadowsAside: true } : entry));
}
