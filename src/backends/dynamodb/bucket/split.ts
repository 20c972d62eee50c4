import { credit, effectiveTokens, type LimitWrite, nextBase, type Rate } from '../../../core/bucket/bucket.js';
import { compareVersions } from '../../../core/config/config.js';
import { add, floorDiv, min, sub } from '../../../core/int.js';
import { heldSlots, startingTokens } from '../../../core/bucket/held-slots.js';
import { hasBalance, refills } from '../../../core/limit-kind.js';
import { isRunning, type Pause, samePause } from '../../../core/pause.js';
import { shareOf } from '../../../core/bucket/shard.js';
import { type EpochMs, MILLI, type Millitokens } from '../../../core/units.js';
import type { Account, ShardImage } from '../table/items.js';
import { DEFAULT_LIFE_FACTOR, expirySec } from './shard-write.js';
import { latestPause } from './shard-pauses.js';
import { STAYS } from './group/group-draft.js';
import { applySettlement, planSettle } from './settle/settle.js';

export const MAX_SHARDS = 64;
/** The capacity of a share must be at least this many times the largest recent ask. */
const ASKS_PER_SHARE = 4;
/** A shard may be merged into the shard that it was split from once it was not written for this long. */
const COLD_AFTER_MS = 3_600_000;

/** The plan of a split. */
export interface Split {
  readonly nextBaseMs: EpochMs;
  readonly count: number;
  readonly newShard: number;
  readonly limits: readonly SplitLimit[];
}

export interface SplitLimit {
  readonly account: Account;
  /** The tokens that move to the new shard. */
  readonly movedMilli: Millitokens;
  /** The write to the old shard's balance, with the bounds of the stored balance under which the write is exact. */
  readonly keeps: LimitWrite;
}

/** Whether half of every share would still be large enough. */
export function maySplit(image: ShardImage, largestAskMilli: (limit: string) => number): boolean {
  const count = image.shardCount * 2;
  if (count > MAX_SHARDS) return false;
  return image.limits.every(({ limit }) => {
    const shareMilli = shareOf(limit, count - 1, count).capacityMilli;
    return shareMilli >= MILLI && shareMilli >= ASKS_PER_SHARE * largestAskMilli(limit.name);
  });
}

/**
 * Half of the balance moves to a new shard; no token is created or lost. Like a take, the write has the right effect on
 * every stored balance within its bounds. A condition that requires one exact balance would always fail on a busy key.
 */
export function planSplit(image: ShardImage, nowMs: EpochMs): Split {
  const nextBaseMs = nextBase(image.baseMs, nowMs);
  const count = image.shardCount * 2;
  const newShard = image.key.shard + image.shardCount;
  const limits = image.limits.map((account) => splitLimit(account, image, nextBaseMs, newShard, count));
  return { nextBaseMs, count, newShard, limits };
}

function splitLimit(
  account: Account,
  image: ShardImage,
  nextBaseMs: EpochMs,
  newShard: number,
  count: number,
): SplitLimit {
  switch (account.limit.kind) {
    case 'rate':
      return splitRate(account, image, nextBaseMs, newShard, count);
    case 'concurrent':
      return splitSlots(account);
    case 'unlimited':
      return { account, movedMilli: 0, keeps: STAYS };
  }
}

/** Only whole free slots move. Held slots stay with their holders. */
function splitSlots(account: Account): SplitLimit {
  const { tokensMilli } = account;
  const movedMilli = tokensMilli <= 0 ? 0 : Number(floorDiv(tokensMilli, 2 * MILLI)) * MILLI;
  // If more slots are held than exist, none moves, and the size of the excess does not matter.
  const atLeastMilli = movedMilli > 0 ? movedMilli : null;
  const keeps = { write: 'add', deltaMilli: -movedMilli, atLeastMilli, atMostMilli: null } as const;
  return { account, movedMilli, keeps };
}

function splitRate(
  account: Account,
  image: ShardImage,
  nextBaseMs: EpochMs,
  newShard: number,
  count: number,
): SplitLimit {
  const { limit, rate, tokensMilli } = account;
  const credited = credit(rate, image.baseMs, nextBaseMs);
  const effective = effectiveTokens(rate, tokensMilli, credited);
  const movedMilli = min(floorDiv(effective, 2), shareOf(limit, newShard, count).capacityMilli);
  const brim = sub(rate.capacityMilli, credited);
  if (tokensMilli > brim) {
    const keeps = { write: 'set', tokensMilli: sub(rate.capacityMilli, movedMilli), atLeastMilli: brim } as const;
    return { account, movedMilli, keeps };
  }
  const deltaMilli = sub(credited, movedMilli);
  // Half of a debt moves too (`movedMilli` is then negative). On a larger debt the write is right as well: no lower
  // bound.
  const atLeastMilli = movedMilli > 0 ? sub(movedMilli, credited) : null;
  // Tokens that were given back since the image was read must fit into the old shard's new share: above its capacity
  // they would be lost.
  const keptBrim = sub(shareOf(limit, image.key.shard, count).capacityMilli, deltaMilli);
  return { account, movedMilli, keeps: { write: 'add', deltaMilli, atLeastMilli, atMostMilli: min(brim, keptBrim) } };
}

/** Whether a shard was unused for so long that it may be merged. */
export function isCold(lastUsedMs: EpochMs, nowMs: EpochMs): boolean {
  return nowMs - lastUsedMs >= COLD_AFTER_MS;
}

/** The plan of a merge. Its write is refused if one of the two shards was written since it was read. */
export interface Merge {
  readonly nextBaseMs: EpochMs;
  readonly count: number;
  readonly limits: readonly {
    readonly account: Account;
    readonly tokensMilli: Millitokens;
  }[];
  /**
   * null: other shards remain, and a shard of several has no ttl, or a pause runs. If one shard remains, it gets a ttl,
   * because the bucket may never be used again.
   */
  readonly ttlSec: number | null;
}

/**
 * Plans to merge the shard `leaves` into the shard `stays`. null: `leaves` is not the other half of `stays`, has
 * holders, or has newer rules; or a pause or resume has reached only one of the two: merged in between, they would keep the
 * pause that a resume is about to end.
 */
export function planMerge(
  stays: ShardImage,
  leaves: ShardImage,
  nowMs: EpochMs,
  lifeFactor = DEFAULT_LIFE_FACTOR,
): Merge | null {
  const count = stays.shardCount / 2;
  if (leaves.shardCount !== stays.shardCount || leaves.key.shard !== stays.key.shard + count) return null;
  if (leaves.holders.size > 0 || compareVersions(stays.version, leaves.version) < 0) return null;
  if (!samePause(runningIn(stays, nowMs), runningIn(leaves, nowMs))) return null;
  const rules = { limits: stays.limits.map(({ limit }) => limit) };
  const settled = applySettlement(leaves, planSettle(leaves, rules, nowMs));
  const nextBaseMs = Math.max(nextBase(stays.baseMs, nowMs), settled.baseMs);
  const limits = stays.limits.map((account) => {
    if (!hasBalance(account.limit.kind)) return { account, tokensMilli: 0 };
    const other = settled.limits.find(({ limit }) => limit.name === account.limit.name);
    const merged = add(
      worthAt(account, stays, nextBaseMs),
      other === undefined ? 0 : worthAt(other, settled, nextBaseMs),
    );
    const share: Rate = shareOf(account.limit, stays.key.shard, count);
    if (refills(account.limit.kind)) return { account, tokensMilli: min(merged, share.capacityMilli) };
    // If one shard remains, it is the whole bucket: its free slots are computed from its holders, which also restores
    // slots that the shards had lost.
    const held = heldSlots(stays.holders, account.limit.name);
    const tokensMilli = count > 1 ? merged : startingTokens(share, held);
    return { account, tokensMilli };
  });
  if (count > 1 || isRunning(latestPause([stays, leaves]), nowMs)) return { nextBaseMs, count, limits, ttlSec: null };
  const merged = { ...stays, baseMs: nextBaseMs, limits: limits.map(wholeAccount) };
  return { nextBaseMs, count, limits, ttlSec: expirySec(merged, nowMs, lifeFactor) };
}

function runningIn({ pause }: ShardImage, nowMs: EpochMs): Pause | null {
  return isRunning(pause, nowMs) ? pause : null;
}

function wholeAccount({ account, tokensMilli }: Merge['limits'][number]): Account {
  return { ...account, rate: account.limit, tokensMilli };
}

function worthAt({ rate, tokensMilli }: Account, { baseMs }: ShardImage, atMs: EpochMs): Millitokens {
  return effectiveTokens(rate, tokensMilli, credit(rate, baseMs, atMs));
}
