import fc from 'fast-check';
import type { LevelRef } from '../../../../src/backend.js';
import { buildLeaseId } from '../../../../src/core/identifiers.js';
import type { Amount, Holder } from '../../../../src/core/bucket/decide.js';
import { changesBy } from '../../../../src/core/bucket/holder-rules.js';
import { sub } from '../../../../src/core/int.js';
import { Limit } from '../../../../src/core/limit.js';
import { shareOf } from '../../../../src/core/bucket/shard.js';
import type { AskEntry, ChangeEntry, ExtendEntry } from '../../../../src/backends/dynamodb/bucket/group/entries.js';
import {
  type Account,
  decodeHolder,
  encodeHolder,
  type ShardImage,
} from '../../../../src/backends/dynamodb/table/items.js';

export const NOW_MS = 1_800_000_000_000;
export const NS = 'AAAAAAAAAA0';
export const KEY = { entityId: 'user-1', resource: 'gpt-4', shard: 0 };
export const VERSION = { sequence: 1, openedAtMs: 0 };

/** A full bucket that was created a minute ago, unless overridden. */
export function imageOf(limits: readonly Limit[], changes: Partial<ShardImage> = {}): ShardImage {
  const { key = KEY, shardCount = 1 } = changes;
  return {
    key,
    baseMs: NOW_MS - 60_000,
    shardCount,
    version: VERSION,
    ttlSec: NOW_MS / 1000 + 86_400,
    writeId: 'seen-write-id-',
    writeUnits: 7,
    acquires: 3,
    expired: 0,
    limits: limits.map((limit) => {
      const rate = shareOf(limit, key.shard, shardCount);
      return { limit, rate, tokensMilli: rate.capacityMilli, consumedMilli: 0 };
    }),
    retired: new Map(),
    holders: new Map(),
    onSweepList: false,
    bytes: 300,
    ...changes,
  };
}

/** The image with other balances, in the order of its limits. */
export function withTokens(image: ShardImage, ...tokensMilli: readonly Account['tokensMilli'][]): ShardImage {
  const limits = image.limits.map((account, at) => ({
    ...account,
    tokensMilli: tokensMilli[at] ?? account.tokensMilli,
  }));
  return { ...image, limits };
}

export function withHolders(image: ShardImage, holders: Readonly<Record<string, Partial<Holder>>>): ShardImage {
  const stored = Object.entries(holders).map(([id, holder]) => [id, storedHolder(id, holder)] as const);
  return { ...image, holders: new Map(stored), onSweepList: true };
}

function storedHolder(leaseId: string, holder: Partial<Holder>) {
  return decodeHolder(leaseId, encodeHolder(holderOf(holder)));
}

/** A holder that expires in a minute and has no amounts, unless overridden. */
export function holderOf(holder: Partial<Holder> = {}): Holder {
  return { expiresAtMs: NOW_MS + 60_000, acquiredAtMs: 0, slots: [], rates: null, caller: null, ...holder };
}

export function amount(name: string, milli: Amount['milli']): Amount {
  return { name, milli };
}

export function levelOf(limits: readonly Limit[], changes: Partial<LevelRef> = {}): LevelRef {
  return { entityId: KEY.entityId, resource: KEY.resource, limits, version: VERSION, lasting: false, ...changes };
}

/** Some names look like stored attributes or like members of every object. */
export const limitNames: fc.Arbitrary<string> = fc.oneof(
  fc.stringMatching(/^[A-Za-z][A-Za-z0-9_.-]{0,20}$/).filter((name) => name !== 'wcu'),
  fc.constantFrom(
    'a',
    'a_tk',
    'a_tk_tk',
    'a-b.c',
    'b_a_tk',
    'a_tc',
    'h_a',
    'constructor',
    'toString',
    `l${'-'.repeat(63)}`,
  ),
);

const smallRates = fc.record({
  capacity: fc.integer({ min: 1, max: 40 }),
  refillAmount: fc.integer({ min: 1, max: 20 }),
  refillPeriodMs: fc.integer({ min: 1, max: 90_000 }),
});
const hugeRates = fc.record({
  capacity: fc.integer({ min: 1, max: 1e12 }),
  refillAmount: fc.integer({ min: 1, max: 1e12 }),
  refillPeriodMs: fc.integer({ min: 1, max: 366 * 86_400_000 }),
});

/** Rates and slots with different names. */
export function limitLists(options: { readonly huge?: boolean; readonly most?: number } = {}): fc.Arbitrary<Limit[]> {
  const rates = options.huge === true ? fc.oneof(smallRates, hugeRates) : smallRates;
  const limit = fc.oneof(
    { weight: 3, arbitrary: fc.tuple(limitNames, rates).map(([name, rule]) => Limit.custom(name, rule)) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(limitNames, fc.integer({ min: 0, max: 9 }))
        .map(([name, slots]) => Limit.concurrent(name, slots)),
    },
  );
  return fc.uniqueArray(limit, { selector: ({ name }) => name, minLength: 1, maxLength: options.most ?? 4 });
}

export const leaseIds: fc.Arbitrary<string> = fc
  .tuple(
    fc.integer({ min: NOW_MS - 100_000, max: NOW_MS }),
    fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  )
  .map(([atMs, random]) => buildLeaseId(atMs, random));

export const callers: fc.Arbitrary<string | null> = fc.option(
  fc.oneof(fc.string({ maxLength: 12 }), fc.constantFrom('', '|', 'a|b', '+a=1|', 'x,y=2', 'job|7|', 'é🙂')),
  { nil: null },
);

const toAmounts = (milli: Readonly<Record<string, Amount['milli']>>): readonly Amount[] =>
  Object.entries(milli).map(([name, value]) => amount(name, value));

interface AskDetails extends Partial<Pick<AskEntry, 'leaseId' | 'counts' | 'dryRun' | 'nowMs'>> {
  readonly holder?: Holder;
  readonly version?: LevelRef['version'];
  readonly lasting?: boolean;
}

/** An ask by these rules, in millitokens. */
export function askEntry(
  limits: readonly Limit[],
  asks: Readonly<Record<string, number>>,
  details: AskDetails = {},
): AskEntry {
  const { holder = null, version = VERSION, lasting = false, ...entry } = details;
  const level = { ...levelOf(limits, { version, lasting }), asks: toAmounts(asks), holder };
  return { kind: 'ask', level, leaseId: null, nowMs: NOW_MS, counts: true, ...entry };
}

type ChangeDetails = Partial<Pick<ChangeEntry, 'leaseId' | 'uncounts' | 'nowMs'>> & {
  readonly version?: LevelRef['version'];
} & (
    | { readonly holder?: ChangeEntry['level']['holder']; readonly totals?: undefined }
    | { readonly holder: 'keep' | 'release'; readonly totals: Readonly<Record<string, number>> }
  );

/**
 * A correction by these rules, in millitokens: positive takes more. With `totals`: to these, which differ by the deltas,
 * and which an expiry of the holder gives back.
 */
export function changeEntry(
  limits: readonly Limit[],
  deltas: Readonly<Record<string, Amount['milli']>>,
  details: ChangeDetails = {},
): ChangeEntry {
  const { leaseId = '', nowMs = NOW_MS, uncounts = false, version = VERSION } = details;
  const ref = levelOf(limits, { version });
  return { kind: 'change', level: changeOf(ref, deltas, details), leaseId, nowMs, uncounts };
}

function changeOf(ref: LevelRef, deltas: Readonly<Record<string, Amount['milli']>>, details: ChangeDetails) {
  if (details.totals === undefined) {
    return { ...ref, amounts: changesBy(toAmounts(deltas)), holder: details.holder ?? 'none' };
  }
  const amounts = toAmounts(details.totals).map(({ name, milli }) => {
    return { name, fromMilli: sub(milli, deltas[name] ?? 0), toMilli: milli };
  });
  return { ...ref, amounts, holder: details.holder, refundsOnExpiry: true };
}

export function extendEntry(leaseId: string, expiresAtMs: number, nowMs = NOW_MS): ExtendEntry {
  return { kind: 'extend', leaseId, expiresAtMs, nowMs };
}

/** An ask for at most this much of one limit; with a holder if it has a lease id. */
export function cutEntry(limit: Limit, milli: number, leaseId: string | null): AskEntry {
  const entry = askEntry([limit], { [limit.name]: milli }, leaseId === null ? {} : { leaseId, holder: holderOf({}) });
  return { ...entry, level: { ...entry.level, asks: [{ name: limit.name, milli, atMost: true }] } };
}
