import type { LevelRef } from '../../../../backend.js';
import type { Rate } from '../../../../core/bucket/bucket.js';
import { compareVersions, type ConfigVersion } from '../../../../core/config/config.js';
import { add, type Int, min, sub } from '../../../../core/int.js';
import { heldSlots, startingTokens } from '../../../../core/bucket/held-slots.js';
import { holdsSlots } from '../../../../core/limit-kind.js';
import { type Limit, sameRule } from '../../../../core/limit.js';
import { shareOf } from '../../../../core/bucket/shard.js';
import type { EpochMs } from '../../../../core/units.js';
import { accountOf, type ShardImage } from '../../table/items.js';
import { planSettle, type SettledLimit, type Settlement } from './settle.js';

type Rules = Pick<LevelRef, 'limits' | 'version'>;

/** The settlement of all shards of a bucket to the same rules. */
export interface WholeSettlement {
  readonly version: ConfigVersion;
  /** One for each shard, in the order of the shards. */
  readonly settlements: readonly Settlement[];
}

/** Whether these are all shards of a bucket, provided that they existed at the same instant. */
export function isWhole(shards: readonly ShardImage[]): boolean {
  return shards.reduce((sum, { shardCount }) => sum + 1 / shardCount, 0) === 1;
}

/** Whether new rules change the number of slots. One shard of several cannot compute how many of them are free. */
export function changesSlots(image: ShardImage, { limits }: Pick<Rules, 'limits'>): boolean {
  return limits.some((limit) => {
    const account = accountOf(image, limit.name);
    return holdsSlots(limit.kind) && (account === undefined || !sameRule(account.limit, limit));
  });
}

/** The newest of the given rules, if any, and the rules of the shards. */
export function newestRules(shards: readonly ShardImage[], held: Rules | null): Rules | null {
  return shards.reduce<Rules | null>((newest, { limits, version }) => {
    if (newest !== null && compareVersions(version, newest.version) <= 0) return newest;
    return { version, limits: limits.map(({ limit }) => limit) };
  }, held);
}

/** Whether the free slots of a whole bucket are correct: every shard has these rules for them, and none lacks any. */
export function hasRightSlots(shards: readonly ShardImage[], { limits }: Pick<Rules, 'limits'>): boolean {
  if (shards.some((image) => changesSlots(image, { limits }))) return false;
  return limits.every((limit) => {
    if (!holdsSlots(limit.kind)) return true;
    const levelled = levelSlots(shards, limit);
    return shards.every((image, at) => freeOf(image, limit.name) === levelled[at]);
  });
}

/** Settles every shard, and makes the free slots of all shards the capacity minus the held slots. */
export function planSettleAll(shards: readonly ShardImage[], rules: Rules, nowMs: EpochMs): WholeSettlement {
  const levelled = new Map(
    rules.limits
      .filter(({ kind }) => holdsSlots(kind))
      .map((limit) => [limit.name, levelSlots(shards, limit)] as const),
  );
  const settlements = shards.map((image, at) => {
    const alone = planSettle(image, rules, nowMs);
    const limits = alone.limits.map((settled) => {
      const tokensMilli = levelled.get(settled.limit.name)?.[at];
      return tokensMilli === undefined ? settled : slotsAt(image, settled, tokensMilli);
    });
    return { ...alone, limits };
  });
  return { version: rules.version, settlements };
}

/** An addition, not a value: takes and releases continue meanwhile, and keep the sum of free and held slots. */
function slotsAt(image: ShardImage, settled: SettledLimit, tokensMilli: Int): SettledLimit {
  switch (settled.kind) {
    case 'unlimited':
      return settled;
    case 'starts':
      return { ...settled, tokensMilli };
    case 'stays': {
      const deltaMilli = sub(tokensMilli, freeOf(image, settled.limit.name));
      // Slots that were taken meanwhile must not be subtracted: this shard would owe them while another has some free.
      const atLeastMilli = deltaMilli < 0 && tokensMilli >= 0 ? sub(0, deltaMilli) : null;
      return { ...settled, write: { write: 'add', deltaMilli, atLeastMilli, atMostMilli: null } };
    }
  }
}

/**
 * The free slots that each shard should have: together the capacity minus the held slots, and no shard owes slots while
 * another has some free. Missing slots are divided like the capacity. Excess slots are taken from shards that have them
 * free.
 */
export function levelSlots(shards: readonly ShardImage[], limit: Limit): readonly Int[] {
  const free = shards.map((image) => freeOf(image, limit.name));
  const held = shards.reduce<Int>((sum, image) => add(sum, heldSlots(image.holders, limit.name)), 0);
  const totalMilli = startingTokens(limit, held);
  const isShort = totalMilli < 0;
  const clipped = free.map((milli) => (milli < 0 === isShort ? milli : 0));
  const missing = clipped.reduce<Int>((sum, milli) => sub(sum, milli), totalMilli);
  if (!isShort && missing > 0) return addByShare(shards, clipped, Number(missing));
  return moveTowardsZero(clipped, missing);
}

function addByShare(shards: readonly ShardImage[], tokens: readonly Int[], missingMilli: number): readonly Int[] {
  const missing: Rate = { kind: 'concurrent', capacityMilli: missingMilli, refillMilli: 0, refillPeriodMs: 0 };
  const parts = shards.map(({ key, shardCount }) => shareOf(missing, key.shard, shardCount).capacityMilli);
  const rest = parts.reduce((sum, part) => sum - part, missingMilli);
  return tokens.map((milli, at) => add(milli, (parts[at] ?? 0) + (at === 0 ? rest : 0)));
}

/** Takes from shards with free slots, or gives to shards that owe slots, in order. The first gets the remainder. */
function moveTowardsZero(tokens: readonly Int[], deltaMilli: Int): readonly Int[] {
  let left = deltaMilli;
  const moved = tokens.map((milli) => {
    const size = min(milli < 0 ? sub(0, milli) : milli, left < 0 ? sub(0, left) : left);
    const canMove = milli < 0 ? left > 0 : left < 0;
    const part = !canMove ? 0 : left < 0 ? sub(0, size) : size;
    left = sub(left, part);
    return add(milli, part);
  });
  return moved.map((milli, at) => (at === 0 ? add(milli, left) : milli));
}

function freeOf(image: ShardImage, name: string): Int {
  const account = accountOf(image, name);
  return account !== undefined && holdsSlots(account.limit.kind) ? account.tokensMilli : 0;
}
