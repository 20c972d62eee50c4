import { expect, test } from 'vitest';
import {
  amount,
  imageOf,
  NOW_MS,
  withHolders,
  withTokens,
} from '../../../../tests/support/dynamodb/shard/shard-images.js';
import { buildLeaseId } from '../../../core/identifiers.js';
import { Limit } from '../../../core/limit.js';
import { asReclaimed } from './across-shards.js';

test('peeking counts every expired holder as reclaimed, even more of them than one write can reclaim', () => {
  const expired = Array.from({ length: 200 }, (_, at) => [
    buildLeaseId(NOW_MS - at, 0),
    { expiresAtMs: NOW_MS, slots: [amount('slots', 1_000)] },
  ]);
  const full = withTokens(imageOf([Limit.concurrent('slots', 200)]), 0);
  const { limits, holders } = asReclaimed(withHolders(full, Object.fromEntries(expired)), NOW_MS);
  expect([limits[0]?.tokensMilli, holders.size]).toEqual([200_000, 0]);
});
