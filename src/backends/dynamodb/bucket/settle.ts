import type { LevelRef } from '../../../backend.js';
import { applyWrite, type LimitWrite, nextBase, planRebase, type Rate } from '../../../core/bucket/bucket.js';
import { amountOf } from '../../../core/bucket/decide.js';
import { add, type Int, sub } from '../../../core/int.js';
import type { Limit } from '../../../core/limit.js';
import { shareOf } from '../../../core/bucket/shard.js';
import type { EpochMs, Millitokens } from '../../../core/units.js';
import { accountOf } from './plan-group.js';
import type { Account, ShardImage } from '../table/items.js';

/** How one shard comes to new rules. */
export interface Settlement {
  readonly nextBaseMs: EpochMs;
  readonly limits: readonly SettledLimit[];
  /** Limits that are no more. */
  readonly removed: readonly string[];
  /** Free slots were computed from the holders of the image: no holder may have come or gone since. */
  readonly countsHolders: boolean;
}

export type SettledLimit =
  /** It was there, of the same kind: credited at the old rate, capped by the smaller capacity. */
  | { readonly kind: 'stays'; readonly limit: Limit; readonly write: LimitWrite }
  /** It is new, or was of another kind. */
  | { readonly kind: 'starts'; readonly limit: Limit; readonly tokensMilli: Millitokens; readonly isNew: boolean }
  /** It is unlimited, and has no balance. `isNew`: it was something else, or nothing. */
  | { readonly kind: 'unlimited'; readonly limit: Limit; readonly isNew: boolean };

/**
 * Moves the base, and with it every limit: to the level's rules, or to the same ones.
 * One shard of several never gets free slots by this: it does not see how many the others have, and shards come to new
 * rules one by one. What is missing then is added by `planSettleAll`, which sees all of them.
 */
export function planSettle(image: ShardImage, level: Pick<LevelRef, 'limits'>, nowMs: EpochMs): Settlement {
  const nextBaseMs = nextBase(image.baseMs, nowMs);
  const { shard } = image.key;
  const limits = level.limits.map((limit) =>
    settleLimit(image, limit, shareOf(limit, shard, image.shardCount), nextBaseMs),
  );
  return {
    nextBaseMs,
    limits,
    removed: image.limits
      .map(({ limit }) => limit.name)
      .filter((name) => !level.limits.some((limit) => limit.name === name)),
    countsHolders: limits.some(startsSlots),
  };
}

function startsSlots({ kind, limit }: SettledLimit): boolean {
  return kind === 'starts' && limit.kind === 'concurrent';
}

function settleLimit(image: ShardImage, limit: Limit, rate: Rate, nextBaseMs: EpochMs): SettledLimit {
  const account = accountOf(image, limit.name);
  if (limit.kind === 'unlimited') return { kind: 'unlimited', limit, isNew: account?.limit.kind !== 'unlimited' };
  const isOneOfSeveral = image.shardCount > 1 && limit.kind === 'concurrent';
  if (account !== undefined && account.limit.kind === limit.kind) {
    const write = isOneOfSeveral
      ? planShardSlots(account, limit, rate)
      : planRebase(account.rate, rate, account.tokensMilli, image.baseMs, nextBaseMs);
    return { kind: 'stays', limit, write };
  }
  const startMilli = isOneOfSeveral ? 0 : rate.capacityMilli;
  // Slots that are held already stay held. What is given back of them is not free on a shard that started without any.
  const tokensMilli = limit.kind === 'concurrent' ? sub(startMilli, heldOf(image, limit.name)) : startMilli;
  return { kind: 'starts', limit, tokensMilli, isNew: account === undefined || account.limit.kind === 'unlimited' };
}

/**
 * Slots of one shard of several: a raise adds none. A cut takes the shard's part of the difference and leaves nothing
 * free, because the free slots of a whole bucket may all be on this shard.
 */
function planShardSlots({ limit, rate, tokensMilli }: Account, after: Limit, share: Rate): LimitWrite {
  if (after.capacityMilli >= limit.capacityMilli) {
    return { write: 'add', deltaMilli: 0, atLeastMilli: null, atMostMilli: null };
  }
  const deltaMilli = share.capacityMilli - rate.capacityMilli;
  const brim = -deltaMilli;
  if (tokensMilli > brim) return { write: 'set', tokensMilli: 0, atLeastMilli: brim };
  return { write: 'add', deltaMilli, atLeastMilli: null, atMostMilli: brim };
}

/** What the holders of a shard hold of a concurrent limit. */
export function heldOf({ holders }: ShardImage, name: string): Int {
  let sum: Int = 0;
  for (const { slots } of holders.values()) sum = add(sum, amountOf(slots, name) ?? 0);
  return sum;
}

/** The image after the settlement, for looking at what would be. */
export function applySettlement(image: ShardImage, { nextBaseMs, limits }: Settlement): ShardImage {
  return {
    ...image,
    baseMs: nextBaseMs,
    limits: limits.map((settled) => {
      const { limit } = settled;
      const account = accountOf(image, limit.name);
      const tokensMilli = tokensAfter(settled, account?.tokensMilli ?? 0);
      const rate = shareOf(limit, image.key.shard, image.shardCount);
      return { limit, rate, tokensMilli, consumedMilli: account?.consumedMilli ?? 0 };
    }),
  };
}

function tokensAfter(settled: SettledLimit, tokensMilli: Millitokens): Millitokens {
  switch (settled.kind) {
    case 'starts':
      return settled.tokensMilli;
    case 'stays':
      return applyWrite(settled.write, tokensMilli);
    case 'unlimited':
      return 0;
  }
}
