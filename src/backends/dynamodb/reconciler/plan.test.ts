import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { amountOf } from '../../../core/bucket/decide.js';
import { buildLeaseId } from '../../../core/identifiers.js';
import { Limit } from '../../../core/limit.js';
import { shareOf } from '../../../core/bucket/shard.js';
import { newBucketImage } from '../bucket/new-bucket.js';
import { decodeHolder, encodeHolder, type ShardImage } from '../table/items.js';
import { isWhole } from '../bucket/settle/settle-all.js';
import { applySettlement } from '../bucket/settle/settle.js';
import { planStep, type RepairStep } from './plan.js';

const NOW_MS = 1_800_000_000_000;
const HOUR_MS = 3_600_000;
const SLOTS = Limit.concurrent('slots', 10);
const RPM = Limit.perMinute('rpm', 60);

interface Parts {
  readonly shard?: number;
  readonly count?: number;
  readonly free?: number;
  /** Slots that are held; each entry is the time from now until that holder expires. */
  readonly held?: readonly (readonly [slots: number, forMs: number])[];
  readonly usedAgoMs?: number;
  readonly onSweepList?: boolean;
  readonly sequence?: number;
  readonly limits?: readonly Limit[];
}

/** A shard with these free and held slots; the rest is as in a new bucket. */
function shardOf(parts: Parts): ShardImage {
  const {
    shard = 0,
    count = 1,
    held = [],
    usedAgoMs = 0,
    onSweepList = true,
    sequence = 1,
    limits = [RPM, SLOTS],
  } = parts;
  const level = { entityId: 'user-1', resource: 'gpt-4', limits, version: { sequence, openedAtMs: 0 } };
  const created = newBucketImage({ ...level, shard }, level, NOW_MS - usedAgoMs);
  const free = parts.free ?? 10;
  const holders = held.map(([slots, forMs], at) => {
    const id = buildLeaseId(NOW_MS - usedAgoMs, at / 64 ** 3);
    const amounts = [{ name: 'slots', milli: slots * 1_000 }];
    const holder = { expiresAtMs: NOW_MS + forMs, acquiredAtMs: 0, slots: amounts, rates: null, caller: null };
    return [id, decodeHolder(id, encodeHolder(holder))] as const;
  });
  return {
    ...created,
    shardCount: count,
    onSweepList,
    writeId: `${buildLeaseId(NOW_MS - usedAgoMs, 0)}${shard}`,
    holders: new Map(holders),
    limits: created.limits.map((account) => ({
      ...account,
      rate: shareOf(account.limit, shard, count),
      tokensMilli: account.limit.kind === 'concurrent' ? free * 1_000 : 0,
    })),
  };
}

const AT = { nowMs: NOW_MS, ownWrites: new Map<string, number>() };

function next(...shards: readonly ShardImage[]): RepairStep | null {
  return planStep(shards, AT);
}

describe('holders', () => {
  test('reclaims expired holders with what they hold, and counts them', () => {
    const step = next(
      shardOf({
        free: 5,
        held: [
          [2, 0],
          [2, 1],
          [1, -5],
        ],
      }),
    );
    expect(step).toMatchObject({ kind: 'reclaim', move: { expired: 2, acquires: 0 } });
    const { move } = step as Extract<RepairStep, { kind: 'reclaim' }>;
    expect(move.holders.map(({ kind }) => kind)).toEqual(['remove', 'remove']);
    expect(move.limits).toMatchObject([
      { name: 'slots', write: { write: 'add', deltaMilli: 3_000 }, consumedMilli: 0 },
    ]);
  });

  test('a bucket with unexpired holders needs no step', () => {
    expect(next(shardOf({ free: 8, held: [[2, 1]], usedAgoMs: HOUR_MS }))).toBeNull();
  });

  test('reclaims expired holders before any other step, on whichever shard they are', () => {
    const shards = [shardOf({ count: 2, free: 0 }), shardOf({ shard: 1, count: 2, free: 5, held: [[1, -1]] })];
    expect(next(...shards)).toMatchObject({ kind: 'reclaim', image: { key: { shard: 1 } } });
  });
});

describe('slots', () => {
  test('slots are right when free and held slots add up to the capacity', () => {
    expect(next(shardOf({ free: 7, held: [[3, 1]] }))).toBeNull();
    expect(next(shardOf({ free: -2, held: [[12, 1]] }))).toBeNull();
    expect(next(shardOf({ count: 2, free: 8 }), shardOf({ shard: 1, count: 2, free: 0, held: [[2, 1]] }))).toBeNull();
  });

  test.each([
    { free: 6, delta: 1_000 },
    { free: 0, delta: 7_000 },
    { free: 8, delta: -1_000 },
    { free: -3, delta: 10_000 },
  ])('corrects $free free slots beside 3 held of 10 by $delta', ({ free, delta }) => {
    const image = shardOf({ free, held: [[3, 1]] });
    expect(next(image)).toEqual({
      kind: 'heal',
      correction: { image, limits: [{ name: 'slots', deltaMilli: delta }] },
    });
  });

  /** The free slots of each shard after the next step, which must be one step over all of them. */
  const levelled = (...shards: readonly ShardImage[]): readonly number[] => {
    const step = next(...shards);
    if (step?.kind !== 'heal-all') throw new Error(`The next step is ${step?.kind ?? 'none'}`);
    return shards.map((image, at) => freeOf(applySettlement(image, step.whole.settlements[at]!)) / 1_000);
  };

  test('divides missing slots like the capacity, and takes surplus slots from where they are free', () => {
    const poor = [shardOf({ count: 2, free: 2 }), shardOf({ shard: 1, count: 2, free: 3 })];
    expect(levelled(...poor)).toEqual([5, 5]);
    const rich = [shardOf({ count: 2, free: 1, held: [[4, 1]] }), shardOf({ shard: 1, count: 2, free: 9 })];
    expect(levelled(...rich)).toEqual([0, 6]);
  });

  test('takes the slots that one shard owes from another that has some, although their sum is right', () => {
    expect(levelled(shardOf({ count: 2, free: 35 }), shardOf({ shard: 1, count: 2, free: -25 }))).toEqual([10, 0]);
    const held = shardOf({ count: 2, free: -10, held: [[15, 1]] });
    expect(levelled(held, shardOf({ shard: 1, count: 2, free: 5 }))).toEqual([-5, 0]);
  });

  test('repairs the slots of shards with different rules by the newest of these rules', () => {
    const more = { limits: [Limit.concurrent('slots', 20), RPM], sequence: 2 };
    expect(levelled(shardOf({ count: 2, free: 10 }), shardOf({ shard: 1, count: 2, free: 0, ...more }))).toEqual([
      15, 5,
    ]);
    const without = { limits: [RPM], held: [[3, 1]] as const };
    expect(levelled(shardOf({ count: 2, free: 1, sequence: 2 }), shardOf({ shard: 1, count: 2, ...without }))).toEqual([
      4, 3,
    ]);
  });

  test('leaves slots alone while a shard is missing from the read', () => {
    expect(next(shardOf({ count: 4, free: 1 }), shardOf({ shard: 1, count: 2, free: 1 }))).toBeNull();
  });

  test('repairs the slots of any tree of shards to the capacity, and then no shard owes what another has', () => {
    const shard = fc.record({ free: fc.integer({ min: -20, max: 40 }), held: fc.integer({ min: 0, max: 6 }) });
    const tree = fc.constantFrom<readonly (readonly [number, number])[]>(
      [[0, 1]],
      [
        [0, 2],
        [1, 2],
      ],
      [
        [0, 4],
        [1, 2],
        [2, 4],
      ],
      [
        [0, 8],
        [1, 4],
        [2, 4],
        [3, 4],
        [4, 8],
      ],
    );
    fc.assert(
      fc.property(tree, fc.array(shard, { minLength: 5, maxLength: 5 }), (places, states) => {
        const shards = places.map(([place, count], at) =>
          shardOf({ shard: place, count, free: states[at]!.free, held: [[states[at]!.held, 1]] }),
        );
        expect(isWhole(shards)).toBe(true);
        const step = next(...shards);
        const free = step === null ? shards.map(freeOf) : freeAfter(shards, step);
        const held = shards.reduce((total, image) => total + heldOf(image), 0);
        expect(free.reduce((total, milli) => total + milli, held)).toBe(SLOTS.capacityMilli);
        expect(free.some((milli) => milli < 0) && free.some((milli) => milli > 0)).toBe(false);
      }),
    );
  });
});

function freeAfter(shards: readonly ShardImage[], step: RepairStep): readonly number[] {
  if (step.kind === 'heal') return [freeOf(step.correction.image) + Number(step.correction.limits[0]?.deltaMilli)];
  if (step.kind !== 'heal-all') throw new Error(`The next step is ${step.kind}`);
  return shards.map((image, at) => freeOf(applySettlement(image, step.whole.settlements[at]!)));
}

function freeOf({ limits }: ShardImage): number {
  return Number(limits.find(({ limit }) => limit.name === 'slots')?.tokensMilli);
}

function heldOf({ holders }: ShardImage): number {
  return [...holders.values()].reduce((sum, { slots }) => sum + Number(amountOf(slots, 'slots') ?? 0), 0);
}

describe('shards', () => {
  const COLD = { free: 5, usedAgoMs: HOUR_MS } as const;

  test('merges a pair once the leaving shard has been cold for an hour, however warm the other is', () => {
    const stays = shardOf({ count: 2, free: 5 });
    const leaves = shardOf({ ...COLD, shard: 1, count: 2 });
    expect(next(stays, leaves)).toMatchObject({ kind: 'merge', stays, leaves, merge: { count: 1 } });
    expect(next(stays, shardOf({ ...COLD, shard: 1, count: 2, usedAgoMs: HOUR_MS - 1 }))).toBeNull();
  });

  test('does not merge a shard with holders', () => {
    const leaves = shardOf({ shard: 1, count: 2, free: 4, held: [[1, 1]], usedAgoMs: HOUR_MS });
    expect(next(shardOf({ ...COLD, count: 2 }), leaves)).toBeNull();
  });

  test('a shard that this visit wrote counts as cold as before', () => {
    const stays = shardOf({ count: 2, free: 5 });
    const leaves = shardOf({ shard: 1, count: 2, free: 5 });
    const plan = (usedMs: number) =>
      planStep([stays, leaves], { nowMs: NOW_MS, ownWrites: new Map([[leaves.writeId, usedMs]]) });
    expect(plan(NOW_MS - HOUR_MS)).toMatchObject({ kind: 'merge' });
    expect(plan(NOW_MS - HOUR_MS + 1)).toBeNull();
  });

  test('merges two adjacent shards of the same depth in an uneven tree', () => {
    const shards = [
      shardOf({ ...COLD, count: 4 }),
      shardOf({ ...COLD, shard: 1, count: 2, free: 0 }),
      shardOf({ ...COLD, shard: 2, count: 4 }),
    ];
    expect(next(...shards)).toMatchObject({ kind: 'merge', stays: shards[0], leaves: shards[2], merge: { count: 2 } });
  });

  test('merges shards with different rules by the newer ones, after the staying shard got them', () => {
    const older = shardOf({ ...COLD, shard: 1, count: 2 });
    const newer = shardOf({ ...COLD, count: 2, sequence: 2, limits: [Limit.perMinute('rpm', 90), SLOTS] });
    expect(next(newer, older)).toMatchObject({ kind: 'merge', stays: newer, leaves: older });
    const [first, second] = [shardOf({ ...COLD, count: 2 }), shardOf({ ...COLD, shard: 1, count: 2, sequence: 2 })];
    expect(next(first, second)).toMatchObject({ kind: 'settle', image: first, version: { sequence: 2 } });
  });
});

describe('the mark on the sweep list', () => {
  const IDLE = { usedAgoMs: 240_000 } as const;

  test('unmarks a bucket that has no holders and is not in use', () => {
    expect(next(shardOf(IDLE))).toMatchObject({ kind: 'unmark' });
  });

  test.each([
    ['a bucket that was used recently', { usedAgoMs: 239_999 }],
    ['a bucket with holders', { ...IDLE, free: 9, held: [[1, 1]] as const }],
    ['a bucket that is not marked', { ...IDLE, onSweepList: false }],
  ])('does not unmark %s', (_, parts) => {
    expect(next(shardOf(parts))).toBeNull();
  });

  test('does not unmark shards', () => {
    expect(next(shardOf({ ...IDLE, count: 2, free: 5 }), shardOf({ ...IDLE, shard: 1, count: 2, free: 5 }))).toBeNull();
  });

  test('unmarking moves the base, so that a write from an older image is refused', () => {
    const image = shardOf(IDLE);
    const step = next(image) as Extract<RepairStep, { kind: 'unmark' }>;
    expect(step.settlement.nextBaseMs).toBeGreaterThan(image.baseMs);
    expect(step.settlement.limits.map(({ limit }) => limit.name)).toEqual(['rpm', 'slots']);
  });
});

test('a deleted bucket needs no step', () => {
  expect(next()).toBeNull();
});
