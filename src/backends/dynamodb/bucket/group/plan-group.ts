import type { LevelAsk, LevelRef } from '../../../../backend.js';
import { credit, effectiveTokens } from '../../../../core/bucket/bucket.js';
import { isClosed } from '../../../../core/bucket/portable.js';
import { compareConfig, compareVersions } from '../../../../core/config/config.js';
import { refills } from '../../../../core/limit-kind.js';
import type { EpochMs, Millitokens } from '../../../../core/units.js';
import { type Account, accountOf, type ShardImage } from '../../table/items.js';
import { changesNothing, type HolderChange, LimitSums, removeHolder, type ShardWrite } from '../shard-write.js';
import type { AskEntry, Entry, EntryResult } from './entries.js';
import { GroupDraft, MAX_HOLDERS, type PlanContext } from './group-draft.js';
import { AskPlanner } from './plan-asks.js';
import { planChange, planExtend, planOperation } from './plan-changes.js';

export type GroupPlan =
  /** The shard must be settled, reclaimed or rebased before the group can be planned. */
  | { readonly kind: 'settle'; readonly level: LevelRef }
  | { readonly kind: 'reclaim'; readonly write: ShardWrite }
  | { readonly kind: 'rebase' }
  /** The answers depend on the stored item, and there is nothing to write that would return it. */
  | { readonly kind: 'read' }
  /** One result per entry, valid once the write has landed. null: the entry must wait for the next write. */
  | { readonly kind: 'write'; readonly write: ShardWrite; readonly results: readonly (EntryResult | null)[] }
  /** One result per entry, with nothing to write. */
  | { readonly kind: 'answer'; readonly results: readonly (EntryResult | null)[] };

/** Beyond this, balances approach the bigint path, which is slow. A new base makes them small again. */
const LARGE_MILLI = 2 ** 50;

/**
 * Plans a group on an image: asks first, skipping those that do not fit; then debits, then refunds. Asks with less
 * reserve come first, those with the same reserve in the order of their arrival, and those that may be cut last. An ask that the image cannot deny
 * for certain is written as if it fitted, and the condition decides. The asks are answered as if each came alone, one after another. An ask that is short while holders have expired
 * waits, with those behind it, until the asks before it are written and the expired holders are reclaimed.
 */
export function planGroup(image: ShardImage, entries: readonly Entry[], at: PlanContext): GroupPlan {
  const newest = newestLevel(entries);
  const configOrder = newest === null ? 'keep' : compareConfig(image, newest);
  if (newest !== null && configOrder === 'settle') return { kind: 'settle', level: newest };
  if (image.limits.some((account) => needsRebase(account, image.baseMs, at.nowMs))) return { kind: 'rebase' };
  const draft = new GroupDraft(image, at);
  const planner = new AskPlanner(draft);
  const results: (EntryResult | null)[] = new Array<null>(entries.length).fill(null);
  for (const index of orderOfAsks(image, entries)) {
    results[index] = planner.ask(entries[index] as AskEntry);
    if (planner.needsReclaim) break;
  }
  if (planner.needsReclaim && results.every((result) => result === null)) {
    return { kind: 'reclaim', write: planReclaim(image, at.nowMs) };
  }
  for (const [index, entry] of entries.entries()) {
    if (entry.kind === 'change') results[index] = planChange(draft, entry);
    else if (entry.kind === 'operation') results[index] = planOperation(draft, entry);
    else if (entry.kind === 'extend') results[index] = planExtend(draft, entry);
  }
  const write = draft.finish(newest, newest !== null && configOrder === 'adopt' ? newest.version : null);
  if (!changesNothing(write)) return { kind: 'write', write, results };
  // Nothing would change, but an answer may depend on balances or on a holder that only the store knows for certain.
  return at.trust === 'exact' || !draft.unsure ? { kind: 'answer', results } : { kind: 'read' };
}

/**
 * The positions of the asks. The last of the whole asks that is served then has the largest reserve, which the write
 * requires. Asks that may be cut follow: they take from what the others leave.
 */
function orderOfAsks(image: ShardImage, entries: readonly Entry[]): readonly number[] {
  const asks: number[] = [];
  let isOrdered = true;
  for (const [index, entry] of entries.entries()) {
    if (entry.kind !== 'ask') continue;
    asks.push(index);
    isOrdered &&= !entry.level.asks.some(({ reserve, atMost }) => reserve !== undefined || atMost === true);
  }
  if (isOrdered) return asks;
  const reserves = entries.map((entry) => (entry.kind === 'ask' ? largestReserve(image, entry.level) : 0));
  const cuts = entries.map((entry) => Number(entry.kind === 'ask' && mayBeCut(entry.level)));
  return asks.toSorted((a, b) => (cuts[a] ?? 0) - (cuts[b] ?? 0) || (reserves[a] ?? 0) - (reserves[b] ?? 0));
}

function mayBeCut({ asks }: LevelAsk): boolean {
  return asks.some(({ atMost }) => atMost === true);
}

/** The largest share of a limit of the bucket that the ask must leave. */
function largestReserve(image: ShardImage, { asks }: LevelAsk): number {
  const known = asks.filter(({ name }) => accountOf(image, name) !== undefined);
  return Math.max(0, ...known.map(({ reserve }) => reserve ?? 0));
}

export function newestLevel(entries: readonly Entry[]): LevelRef | null {
  let newest: LevelRef | null = null;
  for (const entry of entries) {
    if (entry.kind === 'extend') continue;
    if (newest === null || compareVersions(entry.level.version, newest.version) > 0) newest = entry.level;
  }
  return newest;
}

/**
 * Only if it helps: a debt may be that large by itself. Not at the instant of the base: the base moves strictly
 * forward, and would credit a millisecond that has not passed.
 */
function needsRebase({ rate, tokensMilli }: Account, baseMs: EpochMs, nowMs: EpochMs): boolean {
  if (isSmall(tokensMilli) || nowMs <= baseMs) return false;
  return refills(rate.kind) && isSmall(effectiveTokens(rate, tokensMilli, credit(rate, baseMs, nowMs)));
}

function isSmall(milli: Millitokens): boolean {
  return milli <= LARGE_MILLI && milli >= -LARGE_MILLI;
}

/** Reclaims expired holders: their slots, and their rates where they carry them. */
export function planReclaim(image: ShardImage, nowMs: EpochMs): ShardWrite {
  const sums = new LimitSums();
  const holders: HolderChange[] = [];
  let expired = 0;
  for (const [leaseId, holder] of image.holders) {
    if (holder.expiresAtMs > nowMs || holders.length === MAX_HOLDERS) continue;
    if (!isClosed(holder)) expired += 1;
    holders.push(removeHolder(leaseId, holder));
    sums.refund(image, 'concurrent', holder.slots);
    sums.refund(image, 'rate', holder.rates ?? []);
  }
  const limits = sums.changes(image, nowMs);
  return { limits, acquires: 0, expired, holders, adopts: null, ttlSec: undefined };
}
