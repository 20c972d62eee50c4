import { add, sub } from '../../../../core/int.js';
import { refills } from '../../../../core/limit-kind.js';
import { sameRule } from '../../../../core/limit.js';
import type { EpochMs } from '../../../../core/units.js';
import { buildMigratedWriteId, isMigratedWriteId, isWriteOfMigration } from '../../bucket/migrated-write-id.js';
import type { Account, ShardImage } from '../../table/items.js';
import { type BucketPart, foldParts, heldAt, mergeRetired } from '../legacy/legacy-buckets.js';

/** What to do with the bucket that old items become. */
export type BucketPlan =
  /** The bucket is up to date. */
  | { readonly kind: 'same' }
  /** The bucket is missing, or is a copy of an earlier state of the old items. */
  | { readonly kind: 'copy'; readonly image: ShardImage }
  /**
   * A client uses the bucket: it loses the tokens that the old bucket lacks. Done once, in one transaction with the
   * removal.
   */
  | { readonly kind: 'merge'; readonly image: ShardImage };

/** `expected` is the image computed from the old items; `target` is the current image, or null. */
export function planBucket(migration: string, expected: ShardImage, target: ShardImage | null): BucketPlan {
  if (target === null) return { kind: 'copy', image: expected };
  if (isMigratedWriteId(target.writeId) && sameImage(expected, target)) return { kind: 'same' };
  if (isWriteOfMigration(migration, target.writeId) && continues(expected, target))
    return { kind: 'copy', image: expected };
  return { kind: 'merge', image: debit(migration, expected, target) };
}

/** Plans shards whose bucket was converted before them. */
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
 * Whether the old bucket's use continued after the copy: it counts no less, and has no more tokens. Otherwise it may be
 * a new, full bucket, whose tokens must not be added.
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
 * Merges into a bucket that was created full while the old bucket was in use. The new bucket loses what the old one
 * lacks at that instant, down to a debt. This is strict where both buckets got the same refill.
 */
function debit(migration: string, expected: ShardImage, target: ShardImage): ShardImage {
  const baseMs: EpochMs = Math.max(target.baseMs + 1, expected.baseMs);
  const own = target.limits.map((account): Account => {
    const held = heldAt(account, target.baseMs, baseMs);
    const old = refills(account.limit.kind) ? accountOf(expected, account) : undefined;
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
    ...mergeRetired([...own, ...added], retired),
    ttlSec,
    writeId: buildMigratedWriteId(migration, baseMs),
  };
}

function accountOf({ limits }: Pick<ShardImage, 'limits'>, { limit }: Account): Account | undefined {
  return limits.find((account) => account.limit.name === limit.name);
}
