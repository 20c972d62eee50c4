import { describe, expect, test } from 'vitest';
import { printRequest, printTransaction } from '../../../../../tests/support/dynamodb/printed-requests.js';
import {
  amount,
  imageOf,
  KEY,
  NOW_MS,
  NS,
  withHolders,
  withTokens,
} from '../../../../../tests/support/dynamodb/shard/shard-images.js';
import { Limit } from '../../../../core/limit.js';
import type { ShardImage } from '../../table/items.js';
import { planSettleAll } from '../settle/settle-all.js';
import { planSettle } from '../settle/settle.js';
import { buildSettlement, buildSettlementOfAll } from '../../../../../tests/support/dynamodb/write-inputs.js';

const RPM = Limit.perMinute('rpm', 60);
const SLOTS = Limit.concurrent('slots', 3);

/** The base is one second ago: one token of `rpm` has refilled since. */
const seen = (limits: readonly Limit[], changes: Partial<ShardImage> = {}): ShardImage =>
  imageOf(limits, { baseMs: NOW_MS - 1_000, ...changes });

function inputFor(image: ShardImage, limits: readonly Limit[], ttlSec: number | null = 1_800_090_000) {
  const target = { tableName: 'headgate', ns: NS };
  const ids = { own: 'own-write-id--', unanswered: [] };
  const version = { sequence: 2, openedAtMs: 0 };
  return buildSettlement(target, image, planSettle(image, { limits }, NOW_MS), version, ttlSec, ids);
}

const requestFor = (...settled: Parameters<typeof inputFor>): string => printRequest(inputFor(...settled));

describe('settlements', () => {
  test('a settlement is one request with generated aliases', () => {
    expect(inputFor(withTokens(seen([RPM]), 5_000), [RPM])).toMatchInlineSnapshot(`
      {
        "ConditionExpression": "rf = :v0 AND w <> :v1 AND b_rpm_tk <= :v5 AND #a0 <= :v8",
        "ExpressionAttributeNames": {
          "#a0": "ttl",
        },
        "ExpressionAttributeValues": {
          ":v0": {
            "N": "1799999999000",
          },
          ":v1": {
            "S": "own-write-id--",
          },
          ":v2": {
            "N": "1",
          },
          ":v3": {
            "N": "1800000000000",
          },
          ":v4": {
            "S": "2",
          },
          ":v5": {
            "N": "59000",
          },
          ":v6": {
            "N": "1000",
          },
          ":v7": {
            "N": "60000",
          },
          ":v8": {
            "N": "1800090000",
          },
        },
        "Key": {
          "PK": {
            "S": "AAAAAAAAAA0/BUCKET#user-1#gpt-4#0",
          },
          "SK": {
            "S": "#STATE",
          },
        },
        "ReturnValues": "ALL_NEW",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        "TableName": "headgate",
        "UpdateExpression": "SET w = :v1, rf = :v3, cv = :v4, b_rpm_cp = :v7, b_rpm_ra = :v7, b_rpm_rp = :v7, #a0 = :v8 ADD wc :v2, b_rpm_tk :v6",
      }
    `);
  });

  test('a settlement to new numbers credits the refill at the old rate', () => {
    const image = withTokens(seen([RPM]), 5_000);
    expect(requestFor(image, [Limit.perMinute('rpm', 600)])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", rf = 1800000000000, cv = "2", b_rpm_cp = 600000, b_rpm_ra = 600000, b_rpm_rp = 60000, ttl = 1800090000
      ADD wc 1, b_rpm_tk 1000
      IF rf = 1799999999000
         w <> "own-write-id--"
         b_rpm_tk <= 59000
         ttl <= 1800090000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a settlement to a smaller capacity clamps the balance', () => {
    expect(requestFor(seen([RPM]), [Limit.perMinute('rpm', 6)])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", rf = 1800000000000, cv = "2", b_rpm_tk = 6000, b_rpm_cp = 6000, b_rpm_ra = 6000, b_rpm_rp = 60000, ttl = 1800090000
      ADD wc 1
      IF rf = 1799999999000
         w <> "own-write-id--"
         b_rpm_tk >= 5000
         ttl <= 1800090000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a settlement moves every limit to the new base, including unchanged ones', () => {
    const daily = Limit.perDay('daily', 86_400);
    const image = withTokens(seen([RPM, daily]), 5_000, 7_000);
    expect(requestFor(image, [Limit.perMinute('rpm', 600), daily])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", rf = 1800000000000, cv = "2", b_rpm_cp = 600000, b_rpm_ra = 600000, b_rpm_rp = 60000, b_daily_cp = 86400000, b_daily_ra = 86400000, b_daily_rp = 86400000, ttl = 1800090000
      ADD wc 1, b_rpm_tk 1000, b_daily_tk 1000
      IF rf = 1799999999000
         w <> "own-write-id--"
         b_rpm_tk <= 59000
         b_daily_tk <= 86399000
         ttl <= 1800090000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a settlement changes slots by the difference of the capacities, without bounds', () => {
    const image = withTokens(seen([SLOTS]), 1_000);
    expect(requestFor(image, [Limit.concurrent('slots', 1)])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", rf = 1800000000000, cv = "2", b_slots_cp = 1000, b_slots_ra = 0, b_slots_rp = 0, ttl = 1800090000
      ADD wc 1, b_slots_tk -2000
      IF rf = 1799999999000
         w <> "own-write-id--"
         ttl <= 1800090000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a settlement adds a new rate as full, on condition that it does not exist', () => {
    const image = withTokens(seen([RPM]), 5_000);
    expect(requestFor(image, [RPM, Limit.perMinute('tpm', 9)])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", rf = 1800000000000, cv = "2", b_rpm_cp = 60000, b_rpm_ra = 60000, b_rpm_rp = 60000, b_tpm_tk = 9000, b_tpm_cp = 9000, b_tpm_ra = 9000, b_tpm_rp = 60000, ttl = 1800090000
      ADD wc 1, b_rpm_tk 1000
      IF rf = 1799999999000
         w <> "own-write-id--"
         b_rpm_tk <= 59000
         attribute_not_exists(b_tpm_tk)
         ttl <= 1800090000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a settlement adds a concurrent limit without the slots that are already held', () => {
    const image = withHolders(withTokens(seen([RPM]), 5_000), { lease: { slots: [amount('slots', 2_000)] } });
    expect(requestFor(image, [RPM, SLOTS])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", rf = 1800000000000, cv = "2", b_rpm_cp = 60000, b_rpm_ra = 60000, b_rpm_rp = 60000, b_slots_tk = 1000, b_slots_cp = 3000, b_slots_ra = 0, b_slots_rp = 0, ttl = 1800090000
      ADD wc 1, b_rpm_tk 1000
      IF rf = 1799999999000
         w <> "own-write-id--"
         w = "seen-write-id-"
         b_rpm_tk <= 59000
         attribute_not_exists(b_slots_tk)
         ttl <= 1800090000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a settlement removes a limit that the new rules lack, and keeps its counter', () => {
    const image = withTokens(seen([RPM, Limit.perMinute('tpm', 9)]), 5_000);
    expect(requestFor(image, [RPM])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", rf = 1800000000000, cv = "2", b_rpm_cp = 60000, b_rpm_ra = 60000, b_rpm_rp = 60000, ttl = 1800090000
      ADD wc 1, b_rpm_tk 1000
      REMOVE b_tpm_tk, b_tpm_cp, b_tpm_ra, b_tpm_rp
      IF rf = 1799999999000
         w <> "own-write-id--"
         b_rpm_tk <= 59000
         ttl <= 1800090000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a settlement that lifts a limit removes its balance, and the limit starts full when it returns', () => {
    const lifted = requestFor(withTokens(seen([RPM]), 5_000), [Limit.unlimited('rpm')]);
    expect(lifted).toContain('b_rpm_rp = -1');
    expect(lifted).toContain('REMOVE b_rpm_tk, b_rpm_cp, b_rpm_ra');
    expect(lifted).not.toContain('b_rpm_tk <=');
    const unlimited = withTokens(seen([Limit.unlimited('rpm')]), 0);
    expect(requestFor(unlimited, [Limit.unlimited('rpm')])).not.toContain('b_rpm');
    const returned = requestFor(unlimited, [RPM]);
    expect(returned).toContain('b_rpm_tk = 60000, b_rpm_cp = 60000, b_rpm_ra = 60000, b_rpm_rp = 60000');
    expect(returned).toContain('attribute_not_exists(b_rpm_tk)');
  });

  test('a settlement restarts a limit that changes its kind', () => {
    expect(requestFor(withTokens(seen([RPM]), 5_000), [Limit.concurrent('rpm', 4)])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", rf = 1800000000000, cv = "2", b_rpm_tk = 4000, b_rpm_cp = 4000, b_rpm_ra = 0, b_rpm_rp = 0, ttl = 1800090000
      ADD wc 1
      IF rf = 1799999999000
         w <> "own-write-id--"
         w = "seen-write-id-"
         ttl <= 1800090000
      RETURN ALL_NEW, else ALL_OLD"
    `);
    expect(requestFor(withTokens(seen([SLOTS]), 1_000), [Limit.perMinute('slots', 4)])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", rf = 1800000000000, cv = "2", b_slots_tk = 4000, b_slots_cp = 4000, b_slots_ra = 4000, b_slots_rp = 60000, ttl = 1800090000
      ADD wc 1
      IF rf = 1799999999000
         w <> "own-write-id--"
         ttl <= 1800090000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a settlement removes the ttl of a bucket with its own limits, and renews it for other buckets', () => {
    expect(requestFor(seen([RPM]), [RPM], null)).toContain('REMOVE ttl');
    expect(requestFor(seen([RPM], { ttlSec: null }), [RPM], null)).not.toContain('ttl');
    expect(requestFor(seen([RPM], { ttlSec: null }), [RPM])).toContain('ttl = 1800090000');
  });

  test('a settlement of one shard of two stores the whole numbers and adds no free slots', () => {
    const image = seen([SLOTS], { shardCount: 2, key: { ...KEY, shard: 1 } });
    expect(requestFor(withTokens(image, 1_000), [Limit.concurrent('slots', 9)])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#1 #STATE
      SET w = "own-write-id--", rf = 1800000000000, cv = "2", b_slots_cp = 9000, b_slots_ra = 0, b_slots_rp = 0, ttl = 1800090000
      ADD wc 1
      IF rf = 1799999999000
         w <> "own-write-id--"
         ttl <= 1800090000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a settlement of all shards is one transaction: existing slots are added to, and new ones start only if no holder was added or removed', () => {
    const shards = [0, 1].map((shard) => seen([SLOTS], { shardCount: 2, key: { ...KEY, shard }, ttlSec: null }));
    const [first, second] = [withTokens(shards[0]!, 5_000), { ...shards[1]!, limits: [] }];
    const rules = { limits: [SLOTS], version: { sequence: 2, openedAtMs: 0 } };
    const { TransactItems = [] } = buildSettlementOfAll(
      { tableName: 'headgate', ns: NS },
      [first, second],
      planSettleAll([first, second], rules, NOW_MS),
      ({ key }) => ({ own: `own-${key.shard}`, unanswered: [] }),
    );
    expect(printTransaction(TransactItems)).toMatchInlineSnapshot(`
      "UPDATE headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-0", rf = 1800000000000, cv = "2", b_slots_cp = 3000, b_slots_ra = 0, b_slots_rp = 0
      ADD wc 1, b_slots_tk -2000
      IF rf = 1799999999000
         w <> "own-0"
         b_slots_tk >= 2000
      RETURN nothing, else nothing
      UPDATE headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#1 #STATE
      SET w = "own-1", rf = 1800000000000, cv = "2", b_slots_tk = 0, b_slots_cp = 3000, b_slots_ra = 0, b_slots_rp = 0
      ADD wc 1
      IF rf = 1799999999000
         w <> "own-1"
         w = "seen-write-id-"
         attribute_not_exists(b_slots_tk)
      RETURN nothing, else nothing"
    `);
  });
});
