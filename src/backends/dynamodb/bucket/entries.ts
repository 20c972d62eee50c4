import type { LevelAnswer, LevelAsk, LevelChange } from '../../../backend.js';
import type { EpochMs } from '../../../core/units.js';

/** What callers want of one shard of one bucket: as many as have come meanwhile go into one write. */
export type Entry = AskEntry | ChangeEntry | ExtendEntry;

export interface AskEntry {
  readonly kind: 'ask';
  readonly level: LevelAsk;
  readonly leaseId: string | null;
  readonly nowMs: EpochMs;
  /** Whether it is a grant of its own, and not a further part of one. */
  readonly counts: boolean;
  /** Only brings the shard to where the ask could be taken, and says whether it could. */
  readonly looksOnly?: boolean;
}

export interface ChangeEntry {
  readonly kind: 'change';
  readonly level: LevelChange;
  readonly leaseId: string;
  readonly nowMs: EpochMs;
  /** The grant itself is undone: it does not count as one. */
  readonly uncounts: boolean;
  /** Nothing is changed unless the holder is there: without it, the grant that is undone was never made. */
  readonly onlyIfHeld?: true;
  /**
   * A write that requires this base, or null that there is no item, may still be on its way: it must not be able to land
   * any more once this is done.
   */
  readonly fences?: EpochMs | null | undefined;
}

/** A write that would have granted an ask got no answer. */
export interface Doubt {
  /** The base that it requires; null: it creates the item. */
  readonly baseMs: EpochMs | null;
  /** What it takes. */
  readonly answer: LevelAnswer;
}

export interface ExtendEntry {
  readonly kind: 'extend';
  readonly leaseId: string;
  readonly expiresAtMs: EpochMs;
  readonly nowMs: EpochMs;
}

export type EntryResult =
  | { readonly kind: 'granted'; readonly answer: LevelAnswer }
  /** `remembered`: by what this process knows, without asking the store. */
  | { readonly kind: 'denied'; readonly answer: LevelAnswer; readonly remembered: boolean }
  /** An older config brings no holder for what is slots by now. */
  | { readonly kind: 'unheld'; readonly answer: LevelAnswer }
  | { readonly kind: 'id-taken' }
  /** Too many writers at once. */
  | { readonly kind: 'contended' }
  /** A shard that does not exist: what was meant for it belongs to the one that it would be split from. */
  | { readonly kind: 'no-shard' }
  | { readonly kind: 'done'; readonly holderLost: boolean }
  | { readonly kind: 'extended'; readonly found: boolean };

/** Whether it gives something back: a balance that is remembered from before it must not deny. */
export function givesBack(entry: Entry): boolean {
  if (entry.kind !== 'change') return false;
  return entry.level.holder === 'release' || entry.level.deltas.some(({ milli }) => milli < 0);
}
