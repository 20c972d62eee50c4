import { add, sub } from '../../../../core/int.js';
import { sameRule } from '../../../../core/limit.js';
import type { EpochMs } from '../../../../core/units.js';
import { buildMigratedWriteId, isMigratedWriteId, isWriteOfMigration } from '../../bucket/migrated-write-id.js';
import type { Account, ShardImage } from '../../table/items.js';
import { type BucketPart, foldParts, heldAt, withoutTwins } from '../legacy/legacy-buckets.js';

/** What is to become of the bucket that old items are moved to. */
export type BucketPlan =
  /** It is what it should be. */
  | { readonly kind: 'same' }
  /** It is not there, or is a copy of what the old items were a while ago. */
  | { readonly kind: 'copy'; readonly image: ShardImage }
  /** Somebody uses it already: what the old bucket lacked is taken from it too. Once, with the removal of the old. */
  | { readonly kind: 'merge'; readonly image: ShardImage };

/** What comes out of old items; `target`: what stands where it goes. */
export function planBucket(migration: string, expected: ShardImage, target: ShardImage | null): BucketPlan {
  if (target === null) return { kind: 'copy', image: expected };
  if (isMigratedWriteId(target.writeId) && sameImage(expected, target)) return { kind: 'same' };
  if (isWriteOfMigration(migration, target.writeId) && continues(expected, target))
    return { kind: 'copy', image: expected };
  return { kind: 'merge', image: debit(migration, expected, target) };
}

/** Shards that were left behind by those of their bucket which were moved before them. */
export function planStrays(
  migration: string,
  parts: readonly BucketPart[],
  expected: ShardImage,
  target: ShardImage | null,
): BucketPlan {
  if (target === null || !isWriteOfMigration(migration, target.writeId)) return planBucket(migration, expected, target);
  const image = foldParts(target.key, [target, ...parts], (atMs) => buildMigratedWriteId(migration, atMs));
  return { kind: 'merge', image };
}

function sameImage(a: ShardImage, b: ShardImage): boolean {
  return (
    a.baseMs === b.baseMs &&
    a.ttlSec === b.ttlSec &&
    a.limits.length === b.limits.length &&
    a.limits.every((account) => {
      const other = accountOf(b, account);
      return (
        other !== undefined &&
        sameRule(account.limit, other.limit) &&
        account.tokensMilli === other.tokensMilli &&
        account.consumedMilli === other.consumedMilli
      );
    }) &&
    a.retired.size === b.retired.size &&
    [...a.retired].every(([name, milli]) => b.retired.get(name) === milli)
  );
}

/**
 * Whether the old bucket went on from where it was copied: it counts no less, and holds no more. Anything else may be a
 * bucket that was made anew, full, and must give nobody tokens back.
 */
function continues(expected: ShardImage, copy: ShardImage): boolean {
  const atMs = Math.max(expected.baseMs, copy.baseMs);
  return copy.limits.every((before) => {
    const account = accountOf(expected, before);
    return (
      account !== undefined &&
      sameRule(account.limit, before.limit) &&
      account.consumedMilli >= before.consumedMilli &&
      heldAt(account, expected.baseMs, atMs) <= heldAt(before, copy.baseMs, atMs)
    );
  });
}

/**
 * A bucket that was born full while the old one was in use: what the old one lacks at that moment, the new one loses, into
 * debt if need be. Strict where both were given the same refill.
 */
function debit(migration: string, expected: ShardImage, target: ShardImage): ShardImage {
  const baseMs: EpochMs = Math.max(target.baseMs + 1, expected.baseMs);
  const own = target.limits.map((account): Account => {
    const held = heldAt(account, target.baseMs, baseMs);
    const old = account.limit.kind === 'rate' ? accountOf(expected, account) : undefined;
    if (old === undefined) return { ...account, tokensMilli: held };
    const lack = sub(old.rate.capacityMilli, heldAt(old, expected.baseMs, baseMs));
    return {
      ...account,
      tokensMilli: sub(held, lack),
      consumedMilli: add(account.consumedMilli, old.consumedMilli),
    };
  });
  const added = expected.limits
    .filter((account) => accountOf(target, account) === undefined)
    .map((account) => ({ ...account, tokensMilli: heldAt(account, expected.baseMs, baseMs) }));
  const retired = new Map(target.retired);
  for (const [name, milli] of expected.retired) retired.set(name, add(retired.get(name) ?? 0, milli));
  const ttlSec = target.ttlSec === null || expected.ttlSec === null ? null : Math.max(target.ttlSec, expected.ttlSec);
  return {
    ...target,
    baseMs,
    ...withoutTwins([...own, ...added], retired),
    ttlSec,
    writeId: buildMigratedWriteId(migration, baseMs),
  };
}

function accountOf({ limits }: Pick<ShardImage, 'limits'>, { limit }: Account): Account | undefined {
  return limits.find((account) => account.limit.name === limit.name);
}
