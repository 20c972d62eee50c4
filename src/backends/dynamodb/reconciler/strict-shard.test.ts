import { describe, expect, test } from 'vitest';
import { buildLeaseId } from '../../../core/identifiers.js';
import { Limit } from '../../../core/limit.js';
import { newBucketImage } from '../bucket/new-bucket.js';
import { buildShardItem } from '../expressions/shard-item.js';
import { decodeHolder, encodeHolder } from '../table/items.js';
import type { Item } from '../client/transport.js';
import { decodeStrictly } from './strict-shard.js';

const NOW_MS = 1_800_000_000_000;
const LIMITS = [Limit.perMinute('rpm', 60), Limit.concurrent('slots', 10), Limit.perDay('a-b.c_tk', 7)];

function holderOf(caller: string | null, rates: readonly { name: string; milli: number }[] | null) {
  const slots = [{ name: 'slots', milli: 1_000 }];
  return decodeHolder(LEASE, encodeHolder({ expiresAtMs: NOW_MS, acquiredAtMs: 0, slots, rates, caller }));
}

const LEASE = buildLeaseId(NOW_MS, 0.5);

function sound(overrides: Item = {}): Item {
  const level = { entityId: 'user-1', resource: 'gpt-4', limits: LIMITS, version: { sequence: 3, openedAtMs: NOW_MS } };
  const image = {
    ...newBucketImage({ ...level, shard: 0 }, level, NOW_MS),
    writeId: buildLeaseId(NOW_MS, 0),
    onSweepList: true,
  };
  return { ...buildShardItem('ns', image), ...overrides };
}

const holding = (caller: string | null, rates: readonly { name: string; milli: number }[] | null = null) => {
  const holder = holderOf(caller, rates);
  return { attributes: { [`h_${LEASE}`]: { S: holder.text } }, reads: { holders: new Map([[LEASE, holder]]) } };
};

describe('an item is read', () => {
  test.each<readonly [string, { attributes: Item; reads: object }]>([
    ['as it is born', { attributes: {}, reads: { holders: new Map(), retired: new Map(), baseMs: NOW_MS } }],
    ['with a holder', holding(null)],
    ['with a holder whose caller looks like anything', holding('a|b||+x=1')],
    ['with a holder that carries rates', holding('', [{ name: 'rpm', milli: 5 }])],
    [
      'with what a limit that is gone has counted',
      {
        attributes: { b_gone_tc: { N: '-12345678901234567890' } },
        reads: { retired: new Map([['gone', -12_345_678_901_234_567_890n]]) },
      },
    ],
    [
      'with balances beyond 2^53',
      {
        attributes: { b_rpm_tk: { N: '-123456789012345678901' } },
        reads: {
          limits: expect.arrayContaining([expect.objectContaining({ tokensMilli: -123_456_789_012_345_678_901n })]),
        },
      },
    ],
  ])('%s', (_, { attributes, reads }) => {
    const image = decodeStrictly(sound(attributes));
    expect(image).toMatchObject(reads);
    expect(image.limits.map(({ limit }) => String(limit))).toEqual(LIMITS.map(String).toSorted());
  });

  test('accepts an item without the counters of a limit that was added and not used', () => {
    const { b_rpm_tc: _, ...item } = sound();
    const rpm = decodeStrictly(item).limits.find(({ limit }) => limit.name === 'rpm');
    expect(rpm).toMatchObject({ tokensMilli: 60_000, consumedMilli: 0 });
  });
});

describe('strict decoding of a damaged bucket item', () => {
  test.each<readonly [string, Item, string]>([
    ['an unknown attribute', { new: { S: '1' } }, 'attribute new'],
    ['an incomplete limit', { b_tpm_cp: { N: '1000' } }, 'attribute b_tpm_cp'],
    ['a counter of a removed limit that is not a number', { b_tpm_tc: { S: '1' } }, 'attribute b_tpm_tc'],
    ['a fraction', { b_rpm_tk: { N: '1.5' } }, 'attribute b_rpm_tk'],
    ['a base that is text', { rf: { S: '1800000000000' } }, 'attribute rf'],
    ['a ttl that is text', { ttl: { S: 'never' } }, 'attribute ttl'],
    ['a version of another kind', { cv: { S: '3@x' } }, 'attribute cv'],
    ['three shards', { shard_count: { N: '3' } }, 'shard 0 of 3'],
    ['a damaged write id', { w: { S: '?' } }, 'write id'],
    ['a holder without an expiry', { h_x: { S: '' } }, 'h_x'],
    ['a holder whose amount is not a number', { h_x: { S: '1|slots=many' } }, 'h_x'],
  ])('refuses an item for %s', (_, attributes, why) => {
    expect(() => decodeStrictly(sound(attributes))).toThrow(why);
  });

  test.each(['rf', 'cv', 'shard_count'])('refuses an item without %s', (name) => {
    const { [name]: _, ...item } = sound();
    expect(() => decodeStrictly(item)).toThrow(name);
  });

  test("refuses an item whose key is not a bucket's", () => {
    expect(() => decodeStrictly(sound({ PK: { S: 'ns/ENTITY#user-1' } }))).toThrow('Not the key of a bucket');
  });
});
