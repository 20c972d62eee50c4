import type { LevelRef } from '../../backend.js';
import { applyWrite, type LimitWrite, nextBase, planRebase, type Rate } from '../../core/bucket.js';
import { amountOf } from '../../core/decide.js';
import { sub } from '../../core/int.js';
import type { Limit } from '../../core/limit.js';
import { shareOf } from '../../core/shard.js';
import type { EpochMs, Millitokens } from '../../core/units.js';
import { accountOf } from './group.js';
import type { ShardImage } from './items.js';

/** How one shard comes to new rules. */
export interface Settlement {
  readonly nextBaseMs: EpochMs;
  readonly limits: readonly SettledLimit[];
  /** Limits that are no more. */
  readonly removed: readonly string[];
}

export type SettledLimit =
  /** It was there, of the same kind: credited at the old rate, capped by the smaller capacity. */
  | { readonly kind: 'stays'; readonly limit: Limit; readonly write: LimitWrite }
  /** It is new, or was of another kind. */
  | { readonly kind: 'starts'; readonly limit: Limit; readonly tokensMilli: Millitokens; readonly isNew: boolean };

/** Moves the base, and with it every limit: to the level's rules, or to the same ones. */
export function planSettle(image: ShardImage, level: Pick<LevelRef, 'limits'>, nowMs: EpochMs): Settlement {
  const nextBaseMs = nextBase(image.baseMs, nowMs);
  const { shard } = image.key;
  return {
    nextBaseMs,
    limits: level.limits.map((limit) => settleLimit(image, limit, shareOf(limit, shard, image.shardCount), nextBaseMs)),
    removed: image.limits
      .map(({ limit }) => limit.name)
      .filter((name) => !level.limits.some((limit) => limit.name === name)),
  };
}

function settleLimit(image: ShardImage, limit: Limit, rate: Rate, nextBaseMs: EpochMs): SettledLimit {
  const account = accountOf(image, limit.name);
  if (account !== undefined && account.limit.kind === limit.kind) {
    const write = planRebase(account.rate, rate, account.tokensMilli, image.baseMs, nextBaseMs);
    return { kind: 'stays', limit, write };
  }
  // Slots that are held already stay held.
  let tokensMilli: Millitokens = rate.capacityMilli;
  if (limit.kind === 'concurrent') {
    for (const { slots } of image.holders.values()) tokensMilli = sub(tokensMilli, amountOf(slots, limit.name) ?? 0);
  }
  return { kind: 'starts', limit, tokensMilli, isNew: account === undefined };
}

/** The image after the settlement, for looking at what would be. */
export function applySettlement(image: ShardImage, { nextBaseMs, limits }: Settlement): ShardImage {
  return {
    ...image,
    baseMs: nextBaseMs,
    limits: limits.map((settled) => {
      const { limit } = settled;
      const account = accountOf(image, limit.name);
      const tokensMilli =
        settled.kind === 'starts' ? settled.tokensMilli : applyWrite(settled.write, account?.tokensMilli ?? 0);
      const rate = shareOf(limit, image.key.shard, image.shardCount);
      return { limit, rate, tokensMilli, consumedMilli: account?.consumedMilli ?? 0 };
    }),
  };
}
