import fc from 'fast-check';
import type { LevelRef } from '../../../../src/backend.js';
import { amountOf, type Holder } from '../../../../src/core/bucket/decide.js';
import type { Limit } from '../../../../src/core/limit.js';
import type { AskEntry, Entry } from '../../../../src/backends/dynamodb/bucket/group/entries.js';
import { encodeHolder, decodeHolder, type ShardImage } from '../../../../src/backends/dynamodb/table/items.js';
import {
  amount,
  askEntry,
  callers,
  changeEntry,
  extendEntry,
  holderOf,
  imageOf,
  leaseIds,
  limitLists,
  NOW_MS,
  VERSION,
} from '../shard/shard-images.js';

/** A shard as it is stored, and as a process has cached it. */
export interface StalePair {
  readonly truth: ShardImage;
  readonly seen: ShardImage;
}

interface Held {
  readonly id: string;
  readonly part: number;
  readonly expiresInMs: number;
  readonly carries: boolean;
  readonly caller: string | null;
}

export const heldLists: fc.Arbitrary<Held[]> = fc.uniqueArray(
  fc.record({
    id: leaseIds,
    part: fc.nat(3),
    expiresInMs: fc.constantFrom(-5_000, 0, 1, 30_000),
    carries: fc.boolean(),
    caller: callers,
  }),
  { selector: ({ id }) => id, maxLength: 5 },
);

function holderFor(limits: readonly Limit[], { part, expiresInMs, carries, caller }: Held): Holder {
  const slots = limits.filter(({ kind }) => kind === 'concurrent').map(({ name }) => amount(name, (part % 3) * 1_000));
  const rates = limits.filter(({ kind }) => kind !== 'concurrent').map(({ name }) => amount(name, part * 700));
  return holderOf({ expiresAtMs: NOW_MS + expiresInMs, slots, rates: carries ? rates : null, caller });
}

/** The free slots are the capacity less the holders. Rates have any balance, from debt to far above the brim. */
export function bucketOf(
  limits: readonly Limit[],
  held: readonly Held[],
  parts: readonly number[],
  baseMs: number,
  place: Partial<Pick<ShardImage, 'key' | 'shardCount'>> = {},
): ShardImage {
  const holders = new Map(
    held.map((one) => [one.id, decodeHolder(one.id, encodeHolder(holderFor(limits, one)))] as const),
  );
  const image = imageOf(limits, { baseMs, holders, onSweepList: holders.size > 0, ...place });
  return {
    ...image,
    limits: image.limits.map((account, at) => {
      if (account.limit.kind === 'rate') {
        return {
          ...account,
          tokensMilli: whole(account.rate.capacityMilli * (parts[at] ?? 1)),
          consumedMilli: 5_000,
        };
      }
      if (account.limit.kind === 'unlimited') return { ...account, tokensMilli: 0, consumedMilli: 5_000 };
      const taken = [...holders.values()].flatMap(({ slots }) =>
        slots.filter(({ name }) => name === account.limit.name),
      );
      return {
        ...account,
        tokensMilli: taken.reduce((free, { milli }) => free - Number(milli), account.rate.capacityMilli),
      };
    }),
  };
}

export const parts = fc.array(fc.oneof(fc.double({ min: -1.5, max: 1.6, noNaN: true }), fc.constantFrom(0, 0.5, 1)), {
  minLength: 4,
  maxLength: 4,
});

/**
 * A cached image may have other balances, holders, versions and TTLs. It mostly has the same base and rules, because
 * otherwise no write would succeed.
 */
export const stalePairs: fc.Arbitrary<StalePair> = fc
  .record({
    limits: limitLists(),
    held: heldLists,
    newlyHeld: heldLists,
    keepsHolders: fc.boolean(),
    sameBalances: fc.boolean(),
    truthParts: parts,
    seenParts: parts,
    ageMs: fc.constantFrom(0, 1, 999, 20_000),
    movedBase: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    adopted: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
  })
  .map((drawn) => {
    const { limits, held, newlyHeld, truthParts, seenParts } = drawn;
    const baseMs = NOW_MS - drawn.ageMs;
    const seenHeld = drawn.keepsHolders ? held : held.filter((_, at) => at % 2 === 0);
    const truthHeld = drawn.keepsHolders
      ? held
      : [...held.filter((_, at) => at % 3 !== 1), ...newlyHeld].filter(isFirst);
    const seen = bucketOf(limits, seenHeld, seenParts, baseMs);
    const truth = bucketOf(
      limits,
      truthHeld,
      drawn.sameBalances ? seenParts : truthParts,
      drawn.movedBase ? baseMs + 1 : baseMs,
    );
    if (drawn.keepsHolders && drawn.sameBalances && !drawn.movedBase && !drawn.adopted) return { seen, truth };
    const version = drawn.adopted ? { ...VERSION, openedAtMs: 5 } : truth.version;
    // Only the lease itself removes a holder, and other writers once it has expired, which they count.
    const expired = [...seen.holders.keys()].filter((id) => !truth.holders.has(id)).length;
    return { seen, truth: { ...truth, version, expired: truth.expired + expired, writeId: 'true-write-id-' } };
  });

function isFirst({ id }: Held, at: number, all: readonly Held[]): boolean {
  return all.findIndex((other) => other.id === id) === at;
}

interface Draw {
  readonly kind: 'ask' | 'hold' | 'debit' | 'refund' | 'settle' | 'release' | 'extend';
  readonly amounts: readonly number[];
  /** The share of each limit that an ask must leave; 0 for none. */
  readonly reserves: readonly number[];
  /** Whether each limit is a shadow for an ask. */
  readonly shadows: readonly boolean[];
  /** Whether the shadows of an ask are counted and not taken. */
  readonly isAside: boolean;
  /** The limit that an ask may be cut at, by its position; -1 for none. A shadow is not cut. */
  readonly cut: number;
  readonly id: string;
  readonly pick: number;
}

const draws: fc.Arbitrary<Draw> = fc.record({
  kind: fc.constantFrom('ask', 'ask', 'hold', 'hold', 'debit', 'refund', 'settle', 'release', 'extend'),
  amounts: fc.array(fc.constantFrom(-1, 0, 0.1, 0.3, 0.5, 1, 1.1), { minLength: 4, maxLength: 4 }),
  reserves: fc.oneof(
    { weight: 2, arbitrary: fc.constant([0, 0, 0, 0]) },
    {
      weight: 1,
      arbitrary: fc.constantFrom([0.3, 0.3, 0.3, 0.3], [0.1, 0.5, 0, 0.9], [0.5, 0.1, 0.3, 0], [1, 0, 0, 1]),
    },
  ),
  shadows: fc.oneof(
    { weight: 2, arbitrary: fc.constant([false, false, false, false]) },
    { weight: 1, arbitrary: fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }) },
  ),
  isAside: fc.boolean(),
  cut: fc.oneof({ weight: 2, arbitrary: fc.constant(-1) }, { weight: 1, arbitrary: fc.integer({ min: 0, max: 3 }) }),
  id: leaseIds,
  pick: fc.nat(9),
});

/** A group that callers of this shard send, planned from the cached image. */
export type RandomGroup = (seen: ShardImage) => readonly Entry[];

export const groups: fc.Arbitrary<RandomGroup> = fc
  .tuple(fc.array(draws, { minLength: 1, maxLength: 8 }), fc.integer({ min: 0, max: 3 }))
  .map(
    ([drawn, sequence]) =>
      (seen) =>
        drawn.map((draw) => entryOf(seen, draw, sequence === 0 ? 2 : 1)),
  );

function entryOf(seen: ShardImage, draw: Draw, sequence: number): Entry {
  const entry = plainEntryOf(seen, draw, sequence);
  return entry.kind === 'ask' ? withOptions(seen, entry, draw) : entry;
}

function withOptions(seen: ShardImage, entry: AskEntry, { reserves, shadows, isAside, cut }: Draw): AskEntry {
  const asks = entry.level.asks.map((ask) => {
    const at = seen.limits.findIndex(({ limit }) => limit.name === ask.name);
    const reserve = reserves[at] ?? 0;
    return {
      ...ask,
      ...(reserve === 0 ? {} : { reserve }),
      ...(shadows[at] === true ? { shadow: true as const } : {}),
      ...(at === cut && shadows[at] !== true && seen.limits[at]?.limit.kind !== 'unlimited'
        ? { atMost: true as const }
        : {}),
    };
  });
  const aside = isAside && asks.some(({ shadow }) => shadow === true) ? { shadowsAside: true as const } : {};
  return { ...entry, ...aside, level: { ...entry.level, asks } };
}

function plainEntryOf(seen: ShardImage, { kind, amounts, id, pick }: Draw, sequence: number): Entry {
  const limits = seen.limits.map(({ limit }) => limit);
  const version = { sequence, openedAtMs: 0 };
  const asked = limits.flatMap((limit, at) => {
    const part = amounts[at] ?? 0;
    if (part < 0) return [];
    if (limit.kind === 'unlimited') return [[limit, part * 20_000] as const];
    // Slots are whole tokens.
    const unit = limit.kind === 'concurrent' ? 1_000 : 1;
    return [[limit, Math.round((limit.capacityMilli * part) / unit) * unit] as const];
  });
  const rates = Object.fromEntries(
    asked.filter(([limit]) => limit.kind !== 'concurrent').map(([{ name }, milli]) => [name, milli]),
  );
  const ids = [...seen.holders.keys(), id];
  const leaseId = ids[pick % ids.length] ?? id;
  switch (kind) {
    case 'ask':
      return askEntry(limits, rates, { version });
    case 'hold': {
      const slots = asked
        .filter(([limit]) => limit.kind === 'concurrent')
        .map(([{ name }, milli]) => amount(name, milli));
      const holder = holderOf({
        expiresAtMs: NOW_MS + 7_000 * (1 + pick),
        slots,
        rates: pick % 2 === 0 ? null : Object.entries(rates).map(([name, milli]) => amount(name, milli)),
      });
      const all = Object.fromEntries(asked.map(([{ name }, milli]) => [name, milli]));
      return askEntry(limits, all, { version, leaseId: pick > 7 ? leaseId : id, holder });
    }
    case 'debit':
      return changeEntry(limits, rates, { version });
    case 'refund':
      return changeEntry(limits, negated(rates), { version, uncounts: pick % 2 === 0 });
    case 'settle':
      return totalsEntry(seen, rates, { version, leaseId, holder: 'keep' });
    case 'release': {
      // An undo sets all rates to 0.
      const none = Object.fromEntries(
        limits.filter((limit) => limit.kind !== 'concurrent').map(({ name }) => [name, 0]),
      );
      if (pick > 7) return totalsEntry(seen, none, { version, leaseId, holder: 'release' });
      return changeEntry(limits, pick % 2 === 0 ? rates : negated(rates), { version, leaseId, holder: 'release' });
    }
    case 'extend':
      return extendEntry(leaseId, NOW_MS + Math.max(1, 30_000 * (pick % 3)));
  }
}

interface TotalsDetails {
  readonly version: LevelRef['version'];
  readonly leaseId: string;
  readonly holder: 'keep' | 'release';
}

/** Sets some rates of a lease. The others stay as its holder carries them. */
function totalsEntry(seen: ShardImage, rates: Readonly<Record<string, number>>, details: TotalsDetails): Entry {
  const limits = seen.limits.map(({ limit }) => limit);
  const carried = seen.holders.get(details.leaseId)?.rates ?? [];
  const totals = { ...Object.fromEntries(carried.map(({ name, milli }) => [name, Number(milli)])), ...rates };
  const deltas = Object.entries(totals).map(([name, milli]) => [name, milli - Number(amountOf(carried, name) ?? 0)]);
  return changeEntry(limits, Object.fromEntries(deltas), { ...details, totals });
}

/** Rounds, and avoids -0, which is not a stored number. */
function whole(value: number): number {
  return Math.round(value) + 0;
}

function negated(amounts: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(amounts).map(([name, milli]) => [name, 0 - milli]));
}
