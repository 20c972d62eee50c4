import { expect, test } from 'vitest';
import { printTransaction } from '../../../../../tests/support/dynamodb/printed-requests.js';
import {
  amount,
  imageOf,
  NOW_MS,
  NS,
  withHolders,
  withTokens,
} from '../../../../../tests/support/dynamodb/shard/shard-images.js';
import { Limit } from '../../../../core/limit.js';
import { buildReset } from '../../../../../tests/support/dynamodb/write-inputs.js';

const TARGET = { tableName: 'headgate', ns: NS };

test('a reset fills the shard, removes its holders, and subtracts from the counter what an expiry would have given back', () => {
  const limits = [Limit.perMinute('rpm', 60), Limit.concurrent('slots', 3)];
  const image = withHolders(withTokens(imageOf(limits), 5_000, 1_000), {
    one: { slots: [amount('slots', 2_000)], rates: [amount('rpm', 4_000)] },
    two: { rates: [amount('rpm', 500), amount('gone', 9)] },
  });
  expect(printTransaction([buildReset(TARGET, image, NOW_MS, 'own-write-id--')])).toMatchInlineSnapshot(`
    "UPDATE headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
    SET w = "own-write-id--", rf = 1800000000000, b_rpm_tk = 60000, b_slots_tk = 3000
    ADD wc 1, b_rpm_tc -4500
    REMOVE h_one, h_two
    IF rf = 1799999940000
       w <> "own-write-id--"
       w = "seen-write-id-"
    RETURN nothing, else nothing"
  `);
});

test('a reset moves the base forward even if it is ahead of the clock', () => {
  const image = imageOf([Limit.perMinute('rpm', 60)], { baseMs: NOW_MS + 5 });
  expect(printTransaction([buildReset(TARGET, image, NOW_MS, 'own')])).toContain(`rf = ${NOW_MS + 6}`);
});
