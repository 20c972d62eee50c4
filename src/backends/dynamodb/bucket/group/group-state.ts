import type { LevelRef } from '../../../../backend.js';
import type { EpochMs } from '../../../../core/units.js';
import type { ShardImage } from '../../table/items.js';
import type { ShardKey } from '../../table/keys.js';
import { type Doubt, type Entry, type EntryResult, withShadowsAside } from './entries.js';
import type { WriteAnswer } from '../executor.js';
import type { Judgement, Trust } from './group-draft.js';
import type { SentWrite, Unanswered } from './unanswered.js';
import type { Creation, Update } from '../writes/record-write.js';

/** The entries that are written together, and what is constant while they are. */
export interface Group {
  readonly ns: string;
  readonly key: ShardKey;
  readonly entries: readonly Entry[];
  /** The latest time of the entries. */
  readonly nowMs: EpochMs;
  readonly maxRetries: number;
  readonly lifeFactor: number;
  /** The leases of asks that an earlier group may have granted, because a write of it got no answer. */
  readonly inDoubt: ReadonlySet<string>;
}

/** The image that is cached when the group starts. */
export interface CachedImage {
  readonly image: ShardImage | null;
  readonly trust: Trust;
  /** The store has answered recently that the record does not exist. */
  readonly isAbsent: boolean;
  /** What the image says about the ask that was judged last. */
  readonly judgement: Judgement | null;
}

/** What to do next. The answer to it is an argument of `step`. */
export type GroupAction =
  /** Read the shard. */
  | { readonly kind: 'read' }
  /** Send a write once, under a new id. */
  | { readonly kind: 'send'; readonly build: (writeId: string) => Creation | Update }
  /** Settle all shards of the bucket to the rules of a level. */
  | { readonly kind: 'settle-all'; readonly level: LevelRef }
  /** Wait before the next attempt. */
  | { readonly kind: 'pause'; readonly attempt: number }
  /** Every entry has its answer. `forget`: the image may be stale, so the next group starts without it. */
  | { readonly kind: 'done'; readonly forget: boolean };

export type GroupAnswer =
  | { readonly kind: 'read'; readonly image: ShardImage | null }
  | { readonly kind: 'sent'; readonly id: string; readonly answer: WriteAnswer }
  /** False: it was not possible, and this shard must be settled alone. */
  | { readonly kind: 'settled-all'; readonly isDone: boolean }
  | { readonly kind: 'paused' }
  /** The deadline leaves no time for the pause. */
  | { readonly kind: 'out-of-time' }
  | { readonly kind: 'failed'; readonly error: unknown };

/** The answer of one entry, which is named by its position in the group. */
export interface EntryAnswer {
  readonly index: number;
  readonly outcome: EntryOutcome;
  /** Set if a write that would have granted the entry got no answer. */
  readonly doubt: Doubt | undefined;
}

export type EntryOutcome =
  | { readonly kind: 'result'; readonly result: EntryResult }
  | { readonly kind: 'error'; readonly error: unknown }
  /** The entry must wait for the next group. */
  | { readonly kind: 'deferred' };

export interface GroupStep {
  readonly state: GroupState;
  readonly action: GroupAction;
  /** The entries that are answered by this step. */
  readonly answers: readonly EntryAnswer[];
}

/** What the action under way is for. */
export type Purpose =
  | { readonly kind: 'group'; readonly sent: Omit<SentWrite, 'id'> }
  /** A settlement or a reclaim. It may be sent again: once it has landed, its condition no longer holds. */
  | { readonly kind: 'maintain' }
  | { readonly kind: 'add-ttl' }
  /** A read that must find the shard. */
  | { readonly kind: 'find' }
  /** A read that may prove that an unanswered write landed. */
  | { readonly kind: 'prove' }
  | { readonly kind: 'settle-all'; readonly image: ShardImage; readonly level: LevelRef }
  /** `error`: what to report if there is no time left. */
  | { readonly kind: 'pause'; readonly error: unknown };

export interface GroupState {
  readonly group: Group;
  readonly image: ShardImage | null;
  readonly trust: Trust;
  readonly isAbsent: boolean;
  readonly judgement: Judgement | null;
  /** The positions of the entries that have no answer yet. */
  readonly open: readonly number[];
  readonly unanswered: Unanswered;
  readonly refusals: number;
  readonly resends: number;
  /** How long the bucket had not been written before this group, as far as the image shows. */
  readonly idleMs: number;
  readonly purpose: Purpose;
}

/**
 * A shadow must not refuse an ask by the races that it loses: from now on it is not taken. Not while a write has no answer,
 * because its holder would not show whether it took the shadow. The same state: there is no such shadow.
 */
export function putShadowsAside(state: GroupState): GroupState {
  if (state.unanswered.writes.length > 0) return state;
  const entries = withShadowsAside(state.group.entries);
  return entries === state.group.entries ? state : { ...state, group: { ...state.group, entries } };
}
