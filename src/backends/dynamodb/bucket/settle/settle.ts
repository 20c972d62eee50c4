import type { LevelRef } from '../../../../backend.js';
import { applyWrite, type LimitWrite, nextBase, planRebase, type Rate } from '../../../../core/bucket/bucket.js';
import { heldSlots, startingTokens } from '../../../../core/bucket/held-slots.js';
import { hasBalance, holdsSlots } from '../../../../core/limit-kind.js';
import type { Limit } from '../../../../core/limit.js';
import { shareOf } from '../../../../core/bucket/shard.js';
import type { EpochMs, Millitokens } from '../../../../core/units.js';
import { type Account, accountOf, type ShardImage } from '../../table/items.js';

/** The settlement of one shard to new rules. */
export interface Settlement {
  readonly nextBaseMs: EpochMs;
  readonly limits: readonly SettledLimit[];
  /** The names of limits that the new rules lack. */
  readonly removed: readonly string[];
  /** Free slots were computed from the holders of the image, so no holder may have been added or removed since. */
  readonly countsHolders: boolean;
}

export type SettledLimit =
  /** The limit existed with the same kind: credited at the old rate, capped at the smaller capacity. */
  | { readonly kind: 'stays'; readonly limit: Limit; readonly write: LimitWrite }
  /** The limit is new, or had another kind. */
  | { readonly kind: 'starts'; readonly limit: Limit; readonly tokensMilli: Millitokens; readonly isNew: boolean }
  /** The limit is unlimited and has no balance. `isNew`: it had another kind, or did not exist. */
  | { readonly kind: 'unlimited'; readonly limit: Limit; readonly isNew: boolean };

/**
 * Moves the base, and with it every limit: to the level's rules, or to the same ones. One shard of several never gets
 * free slots from this: it does not see how many the others have, and shards are settled one by one. `planSettleAll`,
 * which sees all shards, adds what is missing then.
 */
export function planSettle(image: ShardImage, level: Pick<LevelRef, 'limits'>, nowMs: EpochMs): Settlement {
  const nextBaseMs = nextBase(image.baseMs, nowMs);
  const { shard } = image.key;
  const limits = level.limits.map((limit) =>
    planSettledLimit(image, limit, shareOf(limit, shard, image.shardCount), nextBaseMs),
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
  return kind === 'starts' && holdsSlots(limit.kind);
}

function planSettledLimit(image: ShardImage, limit: Limit, rate: Rate, nextBaseMs: EpochMs): SettledLimit {
  const account = accountOf(image, limit.name);
  const hadBalance = account !== undefined && hasBalance(account.limit.kind);
  if (!hasBalance(limit.kind)) return { kind: 'unlimited', limit, isNew: account === undefined || hadBalance };
  const isOneOfSeveral = image.shardCount > 1 && holdsSlots(limit.kind);
  if (account !== undefined && account.limit.kind === limit.kind) {
    const write = isOneOfSeveral
      ? planShardSlots(account, limit, rate)
      : planRebase(account.rate, rate, account.tokensMilli, image.baseMs, nextBaseMs);
    return { kind: 'stays', limit, write };
  }
  // Held slots stay held. On a shard that started without free slots, releasing them does not free any.
  const start = isOneOfSeveral ? { ...rate, capacityMilli: 0 } : rate;
  const tokensMilli = startingTokens(start, heldSlots(image.holders, limit.name));
  return { kind: 'starts', limit, tokensMilli, isNew: !hadBalance };
}

/**
 * The slots of one shard of several. A raise adds none. A cut subtracts the shard's part of the difference and leaves
 * none free, because all free slots of the bucket may be on this shard.
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

/** The image after the settlement, to judge asks before it is written. */
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
