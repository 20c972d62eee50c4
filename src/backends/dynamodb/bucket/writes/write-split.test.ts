import { describe, expect, test } from 'vitest';
import { printTransaction } from '../../../../../tests/support/dynamodb/printed-requests.js';
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
import { planMerge, planSplit } from '../split.js';
import { buildMerge, buildSplit } from '../../../../../tests/support/dynamodb/write-inputs.js';

const TARGET = { tableName: 'headgate', ns: NS };
const RPM = Limit.perMinute('rpm', 60);
const SLOTS = Limit.concurrent('slots', 3);

/** The base is one second ago: one token of `rpm` has refilled since. */
const seen = (limits: readonly Limit[], changes: Partial<ShardImage> = {}): ShardImage =>
  imageOf(limits, { baseMs: NOW_MS - 1_000, ...changes });

const splitOf = (image: ShardImage): string =>
  printTransaction(buildSplit(TARGET, image, planSplit(image, NOW_MS), 'own-write-id--').TransactItems ?? []);

describe('splits', () => {
  test('a split is one transaction with generated aliases', () => {
    const image = withTokens(seen([RPM]), 40_000);
    expect(buildSplit(TARGET, image, planSplit(image, NOW_MS), 'own-write-id--')).toMatchInlineSnapshot(`
      {
        "TransactItems": [
          {
            "Update": {
              "ConditionExpression": "rf = :v0 AND w <> :v1 AND #a0 = :v2 AND attribute_not_exists(pz) AND b_rpm_tk >= :v7 AND b_rpm_tk <= :v8",
              "ExpressionAttributeNames": {
                "#a0": "shard_count",
                "#a1": "GSI1PK",
                "#a2": "GSI1SK",
                "#a3": "ttl",
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
                  "N": "2",
                },
                ":v4": {
                  "N": "1800000000000",
                },
                ":v5": {
                  "S": "AAAAAAAAAA0/SWEEP",
                },
                ":v6": {
                  "S": "AAAAAAAAAA0/BUCKET#user-1#gpt-4#0",
                },
                ":v7": {
                  "N": "19500",
                },
                ":v8": {
                  "N": "49500",
                },
                ":v9": {
                  "N": "-19500",
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
              "TableName": "headgate",
              "UpdateExpression": "SET w = :v1, #a0 = :v3, rf = :v4, #a1 = :v5, #a2 = :v6 ADD wc :v2, b_rpm_tk :v9 REMOVE #a3",
            },
          },
          {
            "Put": {
              "ConditionExpression": "attribute_not_exists(PK)",
              "Item": {
                "GSI1PK": {
                  "S": "AAAAAAAAAA0/SWEEP",
                },
                "GSI1SK": {
                  "S": "AAAAAAAAAA0/BUCKET#user-1#gpt-4#1",
                },
                "GSI2PK": {
                  "S": "AAAAAAAAAA0/RESOURCE#gpt-4#4",
                },
                "GSI2SK": {
                  "S": "BUCKET#user-1#gpt-4#1",
                },
                "GSI3PK": {
                  "S": "AAAAAAAAAA0/ENTITY#user-1",
                },
                "GSI3SK": {
                  "S": "BUCKET#gpt-4#1",
                },
                "GSI4PK": {
                  "S": "AAAAAAAAAA0/ALL#4",
                },
                "GSI4SK": {
                  "S": "AAAAAAAAAA0/BUCKET#user-1#gpt-4#1",
                },
                "PK": {
                  "S": "AAAAAAAAAA0/BUCKET#user-1#gpt-4#1",
                },
                "SK": {
                  "S": "#STATE",
                },
                "ac": {
                  "N": "0",
                },
                "b_rpm_cp": {
                  "N": "60000",
                },
                "b_rpm_ra": {
                  "N": "60000",
                },
                "b_rpm_rp": {
                  "N": "60000",
                },
                "b_rpm_tc": {
                  "N": "0",
                },
                "b_rpm_tk": {
                  "N": "20500",
                },
                "cv": {
                  "S": "1",
                },
                "rf": {
                  "N": "1800000000000",
                },
                "shard_count": {
                  "N": "2",
                },
                "un": {
                  "N": "0",
                },
                "w": {
                  "S": "own-write-id--",
                },
                "wc": {
                  "N": "1",
                },
              },
              "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
              "TableName": "headgate",
            },
          },
        ],
      }
    `);
  });

  test('a split moves half of the balance to the new shard, and holders stay with their slots', () => {
    const image = withHolders(withTokens(seen([RPM, SLOTS]), 40_000, 2_000), {
      lease: { slots: [amount('slots', 1_000)] },
    });
    expect(splitOf(image)).toMatchInlineSnapshot(`
      "UPDATE headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", shard_count = 2, rf = 1800000000000, GSI1PK = "AAAAAAAAAA0/SWEEP", GSI1SK = "AAAAAAAAAA0/BUCKET#user-1#gpt-4#0"
      ADD wc 1, b_rpm_tk -19500, b_slots_tk -1000
      REMOVE ttl
      IF rf = 1799999999000
         w <> "own-write-id--"
         shard_count = 1
         attribute_not_exists(pz)
         b_rpm_tk >= 19500
         b_rpm_tk <= 49500
         b_slots_tk >= 1000
      RETURN nothing, else nothing
      CREATE headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#1 #STATE
      PUT rf 1800000000000, shard_count 2, cv "1", w "own-write-id--", wc 1, ac 0, un 0, b_rpm_tk 20500, b_rpm_cp 60000, b_rpm_ra 60000, b_rpm_rp 60000, b_rpm_tc 0, b_slots_tk 1000, b_slots_cp 3000, b_slots_ra 0, b_slots_rp 0, GSI1PK "AAAAAAAAAA0/SWEEP", GSI1SK "AAAAAAAAAA0/BUCKET#user-1#gpt-4#1", GSI2PK "AAAAAAAAAA0/RESOURCE#gpt-4#4", GSI2SK "BUCKET#user-1#gpt-4#1", GSI3PK "AAAAAAAAAA0/ENTITY#user-1", GSI3SK "BUCKET#gpt-4#1", GSI4PK "AAAAAAAAAA0/ALL#4", GSI4SK "AAAAAAAAAA0/BUCKET#user-1#gpt-4#1"
      IF attribute_not_exists(PK)
      RETURN nothing, else ALL_OLD"
    `);
  });

  test('a split of a full shard sets the balance that remains', () => {
    expect(splitOf(seen([RPM], { ttlSec: null }))).toMatchInlineSnapshot(`
      "UPDATE headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", shard_count = 2, rf = 1800000000000, GSI1PK = "AAAAAAAAAA0/SWEEP", GSI1SK = "AAAAAAAAAA0/BUCKET#user-1#gpt-4#0", b_rpm_tk = 30000
      ADD wc 1
      IF rf = 1799999999000
         w <> "own-write-id--"
         shard_count = 1
         attribute_not_exists(pz)
         b_rpm_tk >= 59000
      RETURN nothing, else nothing
      CREATE headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#1 #STATE
      PUT rf 1800000000000, shard_count 2, cv "1", w "own-write-id--", wc 1, ac 0, un 0, b_rpm_tk 30000, b_rpm_cp 60000, b_rpm_ra 60000, b_rpm_rp 60000, b_rpm_tc 0, GSI1PK "AAAAAAAAAA0/SWEEP", GSI1SK "AAAAAAAAAA0/BUCKET#user-1#gpt-4#1", GSI2PK "AAAAAAAAAA0/RESOURCE#gpt-4#4", GSI2SK "BUCKET#user-1#gpt-4#1", GSI3PK "AAAAAAAAAA0/ENTITY#user-1", GSI3SK "BUCKET#gpt-4#1", GSI4PK "AAAAAAAAAA0/ALL#4", GSI4SK "AAAAAAAAAA0/BUCKET#user-1#gpt-4#1"
      IF attribute_not_exists(PK)
      RETURN nothing, else ALL_OLD"
    `);
  });

  test('a split of shard 1 of 2 creates shard 3 of 4', () => {
    const image = withTokens(seen([RPM], { shardCount: 2, key: { ...KEY, shard: 1 } }), 5_000);
    expect(splitOf(image)).toMatchInlineSnapshot(`
      "UPDATE headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#1 #STATE
      SET w = "own-write-id--", shard_count = 4, rf = 1800000000000, GSI1PK = "AAAAAAAAAA0/SWEEP", GSI1SK = "AAAAAAAAAA0/BUCKET#user-1#gpt-4#1"
      ADD wc 1, b_rpm_tk -2250
      REMOVE ttl
      IF rf = 1799999999000
         w <> "own-write-id--"
         shard_count = 2
         attribute_not_exists(pz)
         b_rpm_tk >= 2250
         b_rpm_tk <= 17250
      RETURN nothing, else nothing
      CREATE headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#3 #STATE
      PUT rf 1800000000000, shard_count 4, cv "1", w "own-write-id--", wc 1, ac 0, un 0, b_rpm_tk 2750, b_rpm_cp 60000, b_rpm_ra 60000, b_rpm_rp 60000, b_rpm_tc 0, GSI1PK "AAAAAAAAAA0/SWEEP", GSI1SK "AAAAAAAAAA0/BUCKET#user-1#gpt-4#3", GSI2PK "AAAAAAAAAA0/RESOURCE#gpt-4#4", GSI2SK "BUCKET#user-1#gpt-4#3", GSI3PK "AAAAAAAAAA0/ENTITY#user-1", GSI3SK "BUCKET#gpt-4#3", GSI4PK "AAAAAAAAAA0/ALL#4", GSI4SK "AAAAAAAAAA0/BUCKET#user-1#gpt-4#3"
      IF attribute_not_exists(PK)
      RETURN nothing, else ALL_OLD"
    `);
  });
});

describe('merges', () => {
  const stays = withTokens(seen([RPM, SLOTS], { shardCount: 2, writeId: 'w-stays', ttlSec: null }), 5_000, 1_000);
  const key = { ...KEY, shard: 1 };
  const leaves = withTokens(
    seen([RPM, SLOTS], { shardCount: 2, key, writeId: 'w-leaves', ttlSec: null }),
    7_000,
    2_000,
  );

  test('a merge joins both shards on condition that neither was written meanwhile', () => {
    const counted = {
      ...leaves,
      acquires: 4,
      expired: 1,
      limits: leaves.limits.map((account) => ({ ...account, consumedMilli: account.limit === RPM ? 9_000 : 0 })),
      retired: new Map([['a-limit-that-was-removed', 7_000]]),
    };
    const merge = planMerge(stays, counted, NOW_MS)!;
    const request = buildMerge(TARGET, stays, counted, merge, 'own-write-id--');
    expect(printTransaction(request.TransactItems ?? [])).toMatchInlineSnapshot(`
      "UPDATE headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", rf = 1800000000000, shard_count = 1, b_rpm_tk = 13000, b_slots_tk = 3000, ttl = 1800003600
      ADD ac 4, un 1, wc 8, b_rpm_tc 9000, b_a-limit-that-was-removed_tc 7000
      IF w = "w-stays"
      RETURN nothing, else nothing
      DELETE headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#1 #STATE
      IF w = "w-leaves"
      RETURN nothing, else nothing"
    `);
  });

  test('a merge keeps a pause that both shards have, which gets no ttl, and waits while only one shard has it', () => {
    const pauseOf = (endMs: number, reason: string) => ({ pause: { endMs, reason } });
    const merged = (one: object, other: object) => {
      const [a, b] = [
        { ...stays, ...one },
        { ...leaves, ...other },
      ];
      return printTransaction(buildMerge(TARGET, a, b, planMerge(a, b, NOW_MS)!, 'own').TransactItems ?? []);
    };
    const [sooner, later, ended] = [pauseOf(NOW_MS + 1, 'a'), pauseOf(NOW_MS + 2, 'b'), pauseOf(NOW_MS, 'c')];
    expect(merged(later, later)).not.toMatch(/ttl|pz =/);
    for (const one of [sooner, {}, ended]) {
      expect(planMerge({ ...stays, ...one }, { ...leaves, ...later }, NOW_MS)).toBeNull();
      expect(planMerge({ ...stays, ...later }, { ...leaves, ...one }, NOW_MS)).toBeNull();
    }
    expect(merged(ended, {})).toContain('ttl = ');
  });

  test('a split gives the new shard the pause, and requires it in the old one', () => {
    const pause = { endMs: NOW_MS + 5, reason: 'vendor' };
    const printed = splitOf(seen([RPM], { pause }));
    expect(printed).toContain(`pz = ${NOW_MS + 5}\n`);
    expect(printed).toContain(`pz ${NOW_MS + 5}, pzr "vendor"`);
  });
});
