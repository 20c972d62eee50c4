import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  amount,
  callers,
  holderOf,
  imageOf,
  KEY,
  leaseIds,
  limitLists,
  limitNames,
  NOW_MS,
  NS,
  withHolders,
} from '../../../../tests/support/dynamodb/shard/shard-images.js';
import type { Amount, Holder } from '../../../core/bucket/decide.js';
import { buildLeaseId, parseLeaseTime } from '../../../core/identifiers.js';
import { type Int, toInt } from '../../../core/int.js';
import { FOREVER_MS } from '../../../core/pause.js';
import { Limit } from '../../../core/limit.js';
import { shareOf } from '../../../core/bucket/shard.js';
import { buildShardItem } from '../expressions/shard-item.js';
import {
  ATTRIBUTE,
  decodeCounters,
  decodeHolder,
  decodeShard,
  encodeHolder,
  encodeShard,
  printVersion,
  type ShardImage,
  writtenAtMs,
} from './items.js';
import type { Item } from '../client/transport.js';

/** Includes debts, and sums beyond 2^53. */
const amountsMilli: fc.Arbitrary<Int> = fc.oneof(
  fc.integer({ min: -50_000, max: 50_000 }),
  fc.bigInt({ min: -(10n ** 25n), max: 10n ** 25n }).map(toInt),
  fc
    .constantFrom(2 ** 53 - 1, 2n ** 53n, -(2n ** 53n) - 1n, 999_999_999_999_999, 10n ** 16n, -(10n ** 15n))
    .map((n) => toInt(BigInt(n))),
);
const amountLists: fc.Arbitrary<Amount[]> = fc.uniqueArray(fc.record({ name: limitNames, milli: amountsMilli }), {
  selector: ({ name }) => name,
  maxLength: 4,
});
const holders: fc.Arbitrary<Holder> = fc.record({
  expiresAtMs: fc.integer({ min: 0, max: 4e12 }),
  acquiredAtMs: fc.constant(0),
  slots: amountLists,
  rates: fc.option(amountLists, { nil: null }),
  caller: callers,
});
const counters = fc.integer({ min: 0, max: 1e12 });
const FOREVER = { endMs: FOREVER_MS, reason: 'Zoë 😀' };
const images: fc.Arbitrary<ShardImage> = fc
  .record({
    limits: limitLists({ huge: true, most: 6 }),
    shardCount: fc.constantFrom(1, 1, 2, 64),
    balances: fc.array(fc.tuple(amountsMilli, amountsMilli), { minLength: 6, maxLength: 6 }),
    held: fc.uniqueArray(fc.tuple(leaseIds, holders), { selector: ([id]) => id, maxLength: 5 }),
    rest: fc.record({
      baseMs: fc.integer({ min: 0, max: 4e12 }),
      ttlSec: fc.option(fc.integer({ min: 0, max: 4e9 }), { nil: null }),
      writeId: fc.stringMatching(/^[0-9A-Za-z_~]{14}$/),
      writeUnits: counters,
      acquires: counters,
      expired: counters,
      version: fc.record({ sequence: counters, openedAtMs: fc.constantFrom(0, 5, NOW_MS) }),
    }),
    paused: fc.constantFrom({}, { pause: { endMs: NOW_MS, reason: 'vendor' } }, { pause: FOREVER }),
  })
  .map(({ limits, shardCount, balances, held, rest, paused }) => {
    const image = imageOf(limits, { ...rest, shardCount, key: { ...KEY, shard: shardCount - 1 } });
    return {
      ...image,
      ...paused,
      limits: image.limits.map((account, at) => ({
        ...account,
        tokensMilli: balances[at]![0],
        consumedMilli: account.limit.kind === 'rate' ? balances[at]![1] : 0,
      })),
      holders: new Map(held.map(([id, holder]) => [id, decodeHolder(id, encodeHolder(holder))])),
      onSweepList: held.length > 0,
    };
  });

const limitsOf = ({ limits }: ShardImage): Limit[] => limits.map(({ limit }) => limit);
/** DynamoDB returns attributes in no defined order. */
const shuffled = (item: Item, seed: number): Item =>
  Object.fromEntries(Object.entries(item).toSorted(([a], [b]) => scramble(a, seed) - scramble(b, seed)));
const scramble = (name: string, seed: number): number =>
  name.split('').reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0) * (seed + 1)) % 9_973, seed);

describe('shards', () => {
  test('a shard is decoded as it was encoded, in any order of its attributes', () => {
    fc.assert(
      fc.property(images, fc.nat(1_000), (image, seed) => {
        const decoded = decodeShard(shuffled(buildShardItem(NS, image), seed), limitsOf(image));
        expect({ ...decoded, bytes: 0 }).toEqual({ ...image, bytes: 0 });
        expect(limitsOf(decoded)).toEqual(limitsOf(image));
      }),
      { numRuns: 500 },
    );
  });

  test('a shard is decoded with limits that are not known, in the order of their names', () => {
    fc.assert(
      fc.property(images, fc.nat(1_000), (image, seed) => {
        const decoded = limitsOf(decodeShard(shuffled(buildShardItem(NS, image), seed), []));
        expect(decoded.map(String)).toEqual(
          limitsOf(image)
            .map(String)
            .toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1)),
        );
      }),
      { numRuns: 200 },
    );
  });

  test('a shard has its known limits first, in their order, and then the others', () => {
    const [rpm, tpm, slots, extra] = ['rpm:5/min', 'tpm:9/min', 'slots:2/concurrent', 'a:1/sec'].map((text) =>
      Limit.parse(text),
    );
    const item = buildShardItem(NS, imageOf([rpm!, extra!, slots!, tpm!]));
    expect(limitsOf(decodeShard(item, [tpm!, slots!, rpm!])).map(({ name }) => name)).toEqual([
      'tpm',
      'slots',
      'rpm',
      'a',
    ]);
  });

  test('a shard reuses a known limit with the same numbers, so that the default cost is kept', () => {
    const rpm = Limit.perMinute('rpm', 100, { cost: 1 });
    const slots = Limit.concurrent('slots', 3, { cost: 1 });
    const item = buildShardItem(NS, imageOf([rpm, slots]));
    const decoded = decodeShard(item, [slots, rpm]);
    expect(decoded.limits[0]!.limit).toBe(slots);
    expect(decoded.limits[1]!.limit).toBe(rpm);
    expect(decodeShard(item, [Limit.perMinute('rpm', 99, { cost: 1 })]).limits[0]!.limit).toEqual(
      Limit.perMinute('rpm', 100),
    );
  });

  test.each(['tk', 'cp', 'ra', 'rp'])('a shard is decoded without a limit of which %s is missing', (suffix) => {
    const item = buildShardItem(NS, imageOf([Limit.perMinute('a', 1), Limit.perMinute('a_tk', 2)]));
    delete item[`b_a_${suffix}`];
    expect(limitsOf(decodeShard(item, [])).map(String)).toEqual(['a_tk:2/min']);
  });

  test('a shard keeps the consumption of a limit that was removed', () => {
    const item = buildShardItem(NS, imageOf([Limit.perMinute('a_tk', 2)]));
    item[ATTRIBUTE.consumed('a')] = { N: '18014398509481985' };
    const image = decodeShard(item, []);
    expect(image.retired).toEqual(new Map([['a', 18_014_398_509_481_985n]]));
    expect(encodeShard(image)[ATTRIBUTE.consumed('a')]).toEqual({ N: '18014398509481985' });
  });

  test('a shard has the share of its shard count, which is 1 if none is stored', () => {
    const limit = Limit.perMinute('rpm', 10);
    const item = buildShardItem(NS, imageOf([limit], { shardCount: 4, key: { ...KEY, shard: 3 } }));
    expect(decodeShard(item, []).limits[0]!.rate).toEqual(shareOf(limit, 3, 4));
    const first = buildShardItem(NS, imageOf([limit]));
    delete first[ATTRIBUTE.shardCount];
    expect(decodeShard(first, []).shardCount).toBe(1);
  });

  test('a shard stores only the period and the counter of an unlimited limit', () => {
    const image = imageOf([Limit.perMinute('rpm', 5), Limit.unlimited('tpm')]);
    const [rpm, tpm] = image.limits;
    const stored = { ...image, limits: [rpm!, { ...tpm!, tokensMilli: 0, consumedMilli: 7_000 }] };
    const item = buildShardItem(NS, stored);
    const ofLimit = Object.entries(item).filter(([name]) => name.startsWith('b_tpm_'));
    expect(Object.fromEntries(ofLimit)).toEqual({ b_tpm_rp: { N: '-1' }, b_tpm_tc: { N: '7000' } });
    const { limits, retired } = decodeShard(item, []);
    expect([limits, retired.size]).toEqual([stored.limits, 0]);
    expect(decodeCounters(item).consumedMilli.get('tpm')).toBe(7_000);
  });

  test('a shard stores no net consumption of slots', () => {
    const item = encodeShard(imageOf([Limit.concurrent('slots', 3)]));
    expect(Object.keys(item).filter((name) => name.startsWith('b_'))).toEqual([
      'b_slots_tk',
      'b_slots_cp',
      'b_slots_ra',
      'b_slots_rp',
    ]);
  });

  test('a shard is on the sweep list once it has had a holder', () => {
    const image = imageOf([Limit.concurrent('slots', 3)]);
    expect(decodeShard(buildShardItem(NS, image), []).onSweepList).toBe(false);
    expect(decodeShard(buildShardItem(NS, withHolders(image, { L: {} })), []).onSweepList).toBe(true);
  });

  test('the time of the last write of a shard is in its write id', () => {
    expect(writtenAtMs(imageOf([], { writeId: `${buildLeaseId(NOW_MS, 0.5)}abc` }))).toBe(NOW_MS);
  });

  test('the size of a shard is close to what DynamoDB bills', () => {
    const item = buildShardItem(
      NS,
      withHolders(imageOf([Limit.perMinute('rpm', 100)]), { L: { caller: 'x'.repeat(700) } }),
    );
    const { bytes } = decodeShard(item, []);
    expect(bytes).toBeGreaterThan(1_024);
    expect(bytes).toBeLessThan(1_500);
  });

  test('an item that is not a shard is refused', () => {
    expect(() => decodeShard({ PK: { S: 'ns/ENTITY#a' } }, [])).toThrow('Not the key of a bucket');
    expect(() => decodeShard({}, [])).toThrow('Not the key of a bucket');
  });
});

function nameOf(text: string): string {
  return text.slice(0, text.indexOf(':'));
}

describe('holders', () => {
  test('a holder that has changed is decoded from its new text, although the lease was decoded before', () => {
    const leaseId = buildLeaseId(1_800_000_000_000, 0.5);
    const before = holderOf({ expiresAtMs: 1_800_000_060_000 });
    const extended = { ...before, expiresAtMs: 1_800_000_120_000 };
    for (const holder of [before, extended, before]) {
      expect(decodeHolder(leaseId, encodeHolder(holder)).expiresAtMs).toBe(holder.expiresAtMs);
    }
  });

  test('a holder is decoded as it was encoded, with no, empty or some rates and any caller', () => {
    fc.assert(
      fc.property(leaseIds, holders, (id, holder) => {
        const text = encodeHolder(holder);
        expect(decodeHolder(id, text)).toEqual({ ...holder, acquiredAtMs: parseLeaseTime(id), text });
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([
    ['1800000060000', holderOf()],
    ['1800000060000|slots=1000', holderOf({ slots: [amount('slots', 1_000)] })],
    ['1800000060000||+', holderOf({ rates: [] })],
    ['1800000060000|a=1,b=-2|+c=3', holderOf({ slots: [amount('a', 1), amount('b', -2)], rates: [amount('c', 3)] })],
    ['1800000060000|||worker|7', holderOf({ caller: 'worker|7' })],
    ['1800000060000|||', holderOf({ caller: '' })],
  ])('a holder is stored as %s', (text, holder) => {
    expect(encodeHolder(holder)).toBe(text);
  });
});

test('a version that was not opened at a time is stored as its sequence only', () => {
  expect(printVersion({ sequence: 7, openedAtMs: 0 })).toBe('7');
  expect(printVersion({ sequence: 7, openedAtMs: 5 })).toBe('7@5');
});
