import type { LevelRef } from '../../../backend.js';
import { compareVersions, type ConfigVersion } from '../../../core/config/config.js';
import { add, type Int, min, sub } from '../../../core/int.js';
import { type Limit, sameRule } from '../../../core/limit.js';
import { shareOf } from '../../../core/bucket/shard.js';
import type { EpochMs } from '../../../core/units.js';
import { accountOf } from './plan-group.js';
import type { ShardImage } from '../table/items.js';
import { heldOf, planSettle, type SettledLimit, type Settlement } from './settle.js';

type Rules = Pick<LevelRef, 'limits' | 'version'>;

/** How all shards of a bucket come to the same rules at once. */
export interface WholeSettlement {
  readonly version: ConfigVersion;
  /** One for each shard, in their order. */
  readonly settlements: readonly Settlement[];
}

/** Whether these are all shards of a bucket, if they existed like this at one instant. */
export function isWhole(shards: readonly ShardImage[]): boolean {
  return shards.reduce((sum, { shardCount }) => sum + 1 / shardCount, 0) === 1;
}

/** Whether new rules change how many slots there are: one shard of several cannot tell how many of them are free. */
export function changesSlots(image: ShardImage, { limits }: Pick<Rules, 'limits'>): boolean {
  return limits.some((limit) => {
    const account = accountOf(image, limit.name);
    return limit.kind === 'concurrent' && (account === undefined || !sameRule(account.limit, limit));
  });
}

/** The newest rules that are known: those handed in, if any, or those of a shard. */
export function newestRules(shards: readonly ShardImage[], held: Rules | null): Rules | null {
  return shards.reduce<Rules | null>((newest, { limits, version }) => {
    if (newest !== null && compareVersions(version, newest.version) <= 0) return newest;
    return { version, limits: limits.map(({ limit }) => limit) };
  }, held);
}

/** Whether the free slots of a whole bucket are right: every shard has the same rules for them, and none lacks any. */
export function hasRightSlots(shards: readonly ShardImage[], { limits }: Pick<Rules, 'limits'>): boolean {
  if (shards.some((image) => changesSlots(image, { limits }))) return false;
  return limits.every((limit) => {
    if (limit.kind !== 'concurrent') return true;
    const levelled = levelSlots(shards, limit);
    return shards.every((image, at) => freeOf(image, limit.name) === levelled[at]);
  });
}

/** Settles every shard, and makes what they have free together what the capacity is less what they hold together. */
export function planSettleAll(shards: readonly ShardImage[], rules: Rules, nowMs: EpochMs): WholeSettlement {
  const levelled = new Map(
    rules.limits
      .filter(({ kind }) => kind === 'concurrent')
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

/** An addition, not a value: takes and releases go on, and keep the sum of what is free and held. */
function slotsAt(image: ShardImage, settled: SettledLimit, tokensMilli: Int): SettledLimit {
  if (settled.kind === 'unlimited') return settled;
  if (settled.kind === 'starts') return { ...settled, tokensMilli };
  const deltaMilli = sub(tokensMilli, freeOf(image, settled.limit.name));
  // Slots that were taken meanwhile cannot be taken off: this shard would owe them while another has some.
  const atLeastMilli = deltaMilli < 0 && tokensMilli >= 0 ? sub(0, deltaMilli) : null;
  return { ...settled, write: { write: 'add', deltaMilli, atLeastMilli, atMostMilli: null } };
}

/**
 * What each shard should have free of a concurrent limit: together the capacity less what is held, and no shard owes
 * slots while another has some. What is missing is divided like the capacity; what is too much is taken where it is free.
 */
export function levelSlots(shards: readonly ShardImage[], limit: Limit): readonly Int[] {
  const free = shards.map((image) => freeOf(image, limit.name));
  const held = shards.reduce<Int>((sum, image) => add(sum, heldOf(image, limit.name)), 0);
  const totalMilli = sub(limit.capacityMilli, held);
  const isShort = totalMilli < 0;
  const clipped = free.map((milli) => (milli < 0 === isShort ? milli : 0));
  const missing = clipped.reduce<Int>((sum, milli) => sub(sum, milli), totalMilli);
  if (!isShort && missing > 0) return addByShare(shards, clipped, Number(missing));
  return moveTowardsZero(clipped, missing);
}

function addByShare(shards: readonly ShardImage[], tokens: readonly Int[], missingMilli: number): readonly Int[] {
  const missing = { capacityMilli: missingMilli, refillMilli: 0, refillPeriodMs: 0 };
  const parts = shards.map(({ key, shardCount }) => shareOf(missing, key.shard, shardCount).capacityMilli);
  const rest = parts.reduce((sum, part) => sum - part, missingMilli);
  return tokens.map((milli, at) => add(milli, (parts[at] ?? 0) + (at === 0 ? rest : 0)));
}

/** Takes from shards that have some, or gives to those that owe some, one after the other; the first bears the rest. */
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
  return account?.limit.kind === 'concurrent' ? account.tokensMilli : 0;
}
