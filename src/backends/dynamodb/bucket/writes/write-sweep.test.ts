import { expect, test } from 'vitest';
import { printRequest } from '../../../../../tests/support/dynamodb/printed-requests.js';
import { imageOf, NOW_MS, NS, withTokens } from '../../../../../tests/support/dynamodb/shard/shard-images.js';
import { Limit } from '../../../../core/limit.js';
import { planSettle } from '../settle/settle.js';
import { buildHeal, buildUnmark } from '../../../../../tests/support/dynamodb/write-inputs.js';

const TARGET = { tableName: 'table', ns: NS };
const IDS = { own: 'own-write-id--', unanswered: [] };
const LIMITS = [Limit.perMinute('rpm', 60), Limit.concurrent('slots', 10)];

test('a slot correction adds the difference on condition that the shard was not written since', () => {
  const correction = { image: imageOf(LIMITS), limits: [{ name: 'slots', deltaMilli: -3_000 }] };
  expect(printRequest(buildHeal(TARGET, correction, IDS))).toMatchInlineSnapshot(`
    "table AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
    SET w = "own-write-id--"
    ADD wc 1, b_slots_tk -3000
    IF rf = 1799999940000
       w <> "own-write-id--"
       w = "seen-write-id-"
    RETURN ALL_NEW, else ALL_OLD"
  `);
});

test('a bucket is taken off the sweep list with a new base on condition that it was not written since', () => {
  const image = withTokens(imageOf(LIMITS, { onSweepList: true }), -5_000);
  const settlement = planSettle(image, { limits: LIMITS }, NOW_MS);
  expect(printRequest(buildUnmark(TARGET, image, settlement, IDS))).toMatchInlineSnapshot(`
    "table AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
    SET w = "own-write-id--", rf = 1800000000000, b_rpm_cp = 60000, b_rpm_ra = 60000, b_rpm_rp = 60000, b_slots_cp = 10000, b_slots_ra = 0, b_slots_rp = 0
    ADD wc 1, b_rpm_tk 60000
    REMOVE GSI1PK, GSI1SK
    IF rf = 1799999940000
       w <> "own-write-id--"
       w = "seen-write-id-"
       b_rpm_tk <= 0
    RETURN ALL_NEW, else ALL_OLD"
  `);
});
