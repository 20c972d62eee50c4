import { credit, effectiveTokens } from '../../../../core/bucket/bucket.js';
import { add, type Int, min } from '../../../../core/int.js';
import { shareOf } from '../../../../core/bucket/shard.js';
import type { EpochMs } from '../../../../core/units.js';
import type { Account, ShardImage } from '../../table/items.js';
import type { ShardKey } from '../../table/keys.js';
import { expirySec } from '../../bucket/shard-write.js';
import type { Item } from '../../client/transport.js';
import { fieldsOf, limitOfMilli, readWhole, requireWhole } from './legacy-fields.js';
import { isFilledBySetting } from './settings.js';
import { Unmappable } from '../unmappable.js';

/** What one old item has of a bucket: some of its limits, or all of them in one shard. */
export interface BucketPart {
  readonly baseMs: EpochMs;
  /** null: it does not expire. */
  readonly ttlSec: number | null;
  readonly limits: readonly Account[];
  /** Counters of limits that the bucket no longer has. */
  readonly retired: ReadonlyMap<string, Int>;
}

/** The hidden limit for write pressure, which the counter `wc` replaces. It is neither tokens nor usage of a caller. */
const PRESSURE_LIMIT = 'wcu';
const TTL_FACTOR = 7;
const COMPOSITE = /^b_(.+)_(?:tk|tc)$/;

/** Decodes the layout with one item per limit and long names. */
export function decodeLimitBucket(item: Item, limitName: string): BucketPart {
  const fields = fieldsOf(item);
  const capacity = readWhole(fields, 'burst_milli') ?? requireWhole(fields, 'capacity_milli');
  const refill = requireWhole(fields, 'refill_amount_milli');
  const limit = limitOfMilli(limitName, capacity, refill, requireWhole(fields, 'refill_period_ms'));
  const account: Account = {
    limit,
    rate: limit,
    tokensMilli: requireWhole(fields, 'tokens_milli'),
    consumedMilli: readWhole(fields, 'total_consumed_milli') ?? 0,
  };
  return {
    baseMs: Number(requireWhole(fields, 'last_refill_ms')),
    ttlSec: ttlOf(item),
    limits: limitName === PRESSURE_LIMIT ? [] : [account],
    retired: new Map(),
  };
}

/** Decodes the layout with all limits in one item: the whole bucket, or shard `shard` of `count`. */
export function decodeComposite(item: Item, shard = 0, count = 1): BucketPart {
  const fields = fieldsOf(item);
  const names = new Set(Object.keys(fields).flatMap((name) => COMPOSITE.exec(name)?.[1] ?? []));
  names.delete(PRESSURE_LIMIT);
  const limits: Account[] = [];
  const retired = new Map<string, Int>();
  for (const name of names) {
    const consumedMilli = readWhole(fields, `b_${name}_tc`) ?? 0;
    const tokensMilli = readWhole(fields, `b_${name}_tk`);
    // A dropped limit keeps its counter, as a removed limit does.
    if (tokensMilli === undefined || isFilledBySetting(fields, name)) {
      retired.set(name, consumedMilli);
      continue;
    }
    const capacity = readWhole(fields, `b_${name}_bx`) ?? requireWhole(fields, `b_${name}_cp`);
    const refill = requireWhole(fields, `b_${name}_ra`);
    const limit = limitOfMilli(name, capacity, refill, requireWhole(fields, `b_${name}_rp`));
    limits.push({ limit, rate: shareOf(limit, shard, count), tokensMilli, consumedMilli });
  }
  return { baseMs: Number(requireWhole(fields, 'rf')), ttlSec: ttlOf(item), limits, retired };
}

function ttlOf(item: Item): number | null {
  return item['ttl']?.N === undefined ? null : Number(item['ttl'].N);
}

/** The tokens of a limit at an instant. */
export function heldAt({ rate, tokensMilli }: Account, baseMs: EpochMs, atMs: EpochMs): Int {
  return effectiveTokens(rate, tokensMilli, credit(rate, baseMs, atMs));
}

/**
 * Folds parts into one bucket. The refill is the same however often it is computed, so parts with different bases are
 * brought to the latest base without gain or loss. The tokens of a limit's shards add up, to at most its capacity. A
 * missing part holds nothing. The same parts always give the same image.
 */
export function foldParts(key: ShardKey, parts: readonly BucketPart[], writeId: (atMs: EpochMs) => string): ShardImage {
  const byAge = parts.toSorted((a, b) => a.baseMs - b.baseMs);
  const baseMs = byAge.at(-1)?.baseMs ?? 0;
  const accounts = new Map<string, Account>();
  const retired = new Map<string, Int>();
  for (const part of byAge) {
    for (const account of part.limits) {
      const { limit, consumedMilli } = account;
      const before = accounts.get(limit.name);
      const held = add(before?.tokensMilli ?? 0, heldAt(account, part.baseMs, baseMs));
      // The newest part has the current rule.
      accounts.set(limit.name, {
        limit,
        rate: limit,
        tokensMilli: min(held, limit.capacityMilli),
        consumedMilli: add(before?.consumedMilli ?? 0, consumedMilli),
      });
    }
    for (const [name, milli] of part.retired) retired.set(name, add(retired.get(name) ?? 0, milli));
  }
  if (accounts.size === 0 && retired.size === 0) throw new Unmappable('it has no limits');
  const image: ShardImage = {
    key: { ...key, shard: 0 },
    baseMs,
    shardCount: 1,
    version: { sequence: 0, openedAtMs: 0 },
    ttlSec: null,
    writeId: writeId(baseMs),
    writeUnits: 0,
    acquires: 0,
    expired: 0,
    ...mergeRetired(
      [...accounts.values()].toSorted((a, b) => (a.limit.name < b.limit.name ? -1 : 1)),
      retired,
    ),
    holders: new Map(),
    onSweepList: false,
    bytes: 0,
  };
  return { ...image, ttlSec: expiryOf(image, parts) };
}

/** Adds the counter of a removed limit to the limit of the same name in another part. */
export function mergeRetired(
  limits: readonly Account[],
  retired: ReadonlyMap<string, Int>,
): Pick<ShardImage, 'limits' | 'retired'> {
  const names = new Set(limits.map(({ limit }) => limit.name));
  return {
    limits: limits.map((account) => ({
      ...account,
      consumedMilli: add(account.consumedMilli, retired.get(account.limit.name) ?? 0),
    })),
    retired: new Map([...retired].filter(([name]) => !names.has(name))),
  };
}

/** The expiry is not before the old one, and not before the bucket is full: a debt must not be lost. */
function expiryOf(image: ShardImage, parts: readonly BucketPart[]): number | null {
  const expiries = parts.map(({ ttlSec }) => ttlSec).filter((ttlSec) => ttlSec !== null);
  if (expiries.length < parts.length) return null;
  return Math.max(expirySec(image, image.baseMs, TTL_FACTOR), ...expiries);
}
