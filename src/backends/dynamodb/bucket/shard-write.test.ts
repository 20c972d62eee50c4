import { describe, expect, test } from 'vitest';
import { printRequest } from '../../../../tests/support/dynamodb/printed-requests.js';
import {
  amount,
  askEntry,
  changeEntry,
  extendEntry,
  holderOf,
  imageOf,
  NOW_MS,
  NS,
  withHolders,
  withTokens,
} from '../../../../tests/support/dynamodb/shard/shard-images.js';
import { Limit } from '../../../core/limit.js';
import type { Entry } from './group/entries.js';
import type { PlanContext } from './group/group-draft.js';
import { planGroup } from './group/plan-group.js';
import type { ShardImage } from '../table/items.js';
import type { WriteIds } from './writes/record-write.js';
import { buildShardWrite } from '../../../../tests/support/dynamodb/write-inputs.js';

const RPM = Limit.perMinute('rpm', 60);
const TPM = Limit.perMinute('tpm', 6_000);
const SLOTS = Limit.concurrent('slots', 3);
const IDS: WriteIds = { own: 'own-write-id--', unanswered: [] };
const EXACT: PlanContext = { nowMs: NOW_MS, trust: 'exact', lifeFactor: 7, withoutRefunds: false };

/** The base is one second ago: one token of `rpm` and 100 of `tpm` have refilled since. */
const seen = (limits: readonly Limit[], changes: Partial<ShardImage> = {}): ShardImage =>
  imageOf(limits, { baseMs: NOW_MS - 1_000, ...changes });

/** The request for a group. */
function inputFor(image: ShardImage, entries: readonly Entry[], at: Partial<PlanContext> = {}, ids = IDS) {
  const plan = planGroup(image, entries, { ...EXACT, ...at });
  if (plan.kind !== 'write' && plan.kind !== 'reclaim') throw new Error(`It leads to ${plan.kind}`);
  return buildShardWrite({ tableName: 'headgate', ns: NS }, image, plan.write, ids);
}

const requestFor = (...group: Parameters<typeof inputFor>): string => printRequest(inputFor(...group));

describe('takes', () => {
  test('a take is one request with generated aliases', () => {
    const image = withTokens(seen([RPM]), 10_000);
    expect(inputFor(image, [askEntry([RPM], { rpm: 1_000 })])).toMatchInlineSnapshot(`
      {
        "ConditionExpression": "rf = :v0 AND w <> :v1 AND (attribute_not_exists(pz) OR pz <= :v3) AND b_rpm_tk >= :v4 AND b_rpm_tk <= :v5",
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
            "N": "0",
          },
          ":v5": {
            "N": "59000",
          },
          ":v6": {
            "N": "-1000",
          },
          ":v7": {
            "N": "1000",
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
        "UpdateExpression": "SET w = :v1 ADD wc :v2, ac :v2, b_rpm_tk :v6, b_rpm_tc :v7",
      }
    `);
  });

  test('a take in room form subtracts, under both bounds', () => {
    const image = withTokens(seen([RPM]), 10_000);
    expect(requestFor(image, [askEntry([RPM], { rpm: 1_000 })])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--"
      ADD wc 1, ac 1, b_rpm_tk -1000, b_rpm_tc 1000
      IF rf = 1799999999000
         w <> "own-write-id--"
         (attribute_not_exists(pz) OR pz <= 1800000000000)
         b_rpm_tk >= 0
         b_rpm_tk <= 59000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a take in full form sets the balance that remains', () => {
    expect(requestFor(seen([RPM]), [askEntry([RPM], { rpm: 1_000 })])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", b_rpm_tk = 58000
      ADD wc 1, ac 1, b_rpm_tc 1000
      IF rf = 1799999999000
         w <> "own-write-id--"
         (attribute_not_exists(pz) OR pz <= 1800000000000)
         b_rpm_tk >= 59000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a take of several limits uses the form that each needs, and leaves other limits untouched', () => {
    const image = withTokens(seen([RPM, TPM, Limit.perDay('daily', 5)]), 10_000);
    const asks = [askEntry([RPM, TPM], { rpm: 1_000, tpm: 300_000 }), askEntry([RPM, TPM], { rpm: 2_000 })];
    expect(requestFor(image, asks)).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", b_tpm_tk = 5600000, ttl = 1800518452
      ADD wc 1, ac 2, b_rpm_tk -3000, b_rpm_tc 3000, b_tpm_tc 300000
      IF rf = 1799999999000
         w <> "own-write-id--"
         (attribute_not_exists(pz) OR pz <= 1800000000000)
         b_rpm_tk >= 2000
         b_rpm_tk <= 59000
         b_tpm_tk >= 5900000
         ttl <= 1800518452
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a take of 0 requires a balance that is not negative', () => {
    expect(requestFor(withTokens(seen([RPM]), 5_000), [askEntry([RPM], { rpm: 0 })])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--"
      ADD wc 1, ac 1
      IF rf = 1799999999000
         w <> "own-write-id--"
         (attribute_not_exists(pz) OR pz <= 1800000000000)
         b_rpm_tk >= -1000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a take of more than an old image has is sent, and the condition decides', () => {
    const image = withTokens(seen([RPM]), -5_000);
    const ask = askEntry([RPM], { rpm: 1_000 });
    expect(requestFor(image, [ask], { trust: 'guess' })).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--"
      ADD wc 1, ac 1, b_rpm_tk -1000, b_rpm_tc 1000
      IF rf = 1799999999000
         w <> "own-write-id--"
         (attribute_not_exists(pz) OR pz <= 1800000000000)
         b_rpm_tk >= 0
         b_rpm_tk <= 59000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });
});

describe('corrections', () => {
  test('a debit may cause a debt, as long as the debt is repaid before the ttl', () => {
    const image = withTokens(seen([RPM]), 1_000);
    expect(requestFor(image, [changeEntry([RPM], { rpm: 50_000 })])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--"
      ADD wc 1, b_rpm_tk -50000, b_rpm_tc 50000
      IF rf = 1799999999000
         w <> "own-write-id--"
         b_rpm_tk >= -86291000
         b_rpm_tk <= 59000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a refund adds, on condition of the base only', () => {
    expect(requestFor(seen([RPM]), [changeEntry([RPM], { rpm: -5_000 })])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--"
      ADD wc 1, b_rpm_tk 5000, b_rpm_tc -5000
      IF rf = 1799999999000
         w <> "own-write-id--"
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('undoing a grant decreases the counter of grants', () => {
    const undo = { ...changeEntry([RPM], { rpm: -1_000 }), uncounts: true };
    expect(requestFor(seen([RPM]), [undo])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--"
      ADD wc 1, ac -1, b_rpm_tk 1000, b_rpm_tc -1000
      IF rf = 1799999999000
         w <> "own-write-id--"
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });
});

describe('holders', () => {
  const held = withHolders(withTokens(seen([RPM, SLOTS]), 30_000, 2_000), {
    lease: { slots: [amount('slots', 1_000)], rates: [amount('rpm', 4_000)] },
  });

  test('a take with a holder adds it and puts the shard on the sweep list', () => {
    const holder = holderOf({ slots: [amount('slots', 1_000)], caller: 'job' });
    const ask = askEntry([SLOTS], { slots: 1_000 }, { leaseId: 'lease', holder });
    expect(requestFor(seen([SLOTS]), [ask])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", h_lease = "1800000060000|slots=1000||job", GSI1PK = "AAAAAAAAAA0/SWEEP", GSI1SK = "AAAAAAAAAA0/BUCKET#user-1#gpt-4#0"
      ADD wc 1, ac 1, b_slots_tk -1000
      IF rf = 1799999999000
         w <> "own-write-id--"
         (attribute_not_exists(pz) OR pz <= 1800000000000)
         b_slots_tk >= 1000
         attribute_not_exists(h_lease)
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a take with a holder does not write the sweep keys of a shard that has them', () => {
    const ask = askEntry([SLOTS], { slots: 1_000 }, { leaseId: 'lease', holder: holderOf() });
    expect(requestFor(seen([SLOTS], { onSweepList: true }), [ask])).not.toContain('GSI1');
  });

  test('a holder is extended on condition of its stored text', () => {
    expect(requestFor(held, [extendEntry('lease', NOW_MS + 90_000)])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", h_lease = "1800000090000|slots=1000|+rpm=4000"
      ADD wc 1
      IF rf = 1799999999000
         w <> "own-write-id--"
         h_lease = "1800000060000|slots=1000|+rpm=4000"
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a release removes the holder, frees its slots and refunds in one write', () => {
    const release = changeEntry([RPM, SLOTS], { rpm: -4_000 }, { leaseId: 'lease', holder: 'release' });
    expect(requestFor(held, [release])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--"
      ADD wc 1, b_rpm_tk 4000, b_rpm_tc -4000, b_slots_tk 1000
      REMOVE h_lease
      IF rf = 1799999999000
         w <> "own-write-id--"
         h_lease = "1800000060000|slots=1000|+rpm=4000"
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a settle replaces the holder with its new totals', () => {
    const details = { leaseId: 'lease', holder: 'keep', totals: { rpm: 6_000 } } as const;
    expect(requestFor(held, [changeEntry([RPM, SLOTS], { rpm: 2_000 }, details)])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", h_lease = "1800000060000|slots=1000|+rpm=6000"
      ADD wc 1, b_rpm_tk -2000, b_rpm_tc 2000
      IF rf = 1799999999000
         w <> "own-write-id--"
         b_rpm_tk >= -86339000
         b_rpm_tk <= 59000
         h_lease = "1800000060000|slots=1000|+rpm=4000"
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a settle whose holder the image lacks charges the whole amount on condition that the holder does not exist', () => {
    const details = { leaseId: 'gone', holder: 'keep', totals: { rpm: 6_000 } } as const;
    const settle = changeEntry([RPM, SLOTS], { rpm: 2_000 }, details);
    expect(requestFor(held, [settle], { trust: 'guess' })).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--"
      ADD wc 1, b_rpm_tk -6000, b_rpm_tc 6000
      IF rf = 1799999999000
         w <> "own-write-id--"
         b_rpm_tk >= -86335000
         b_rpm_tk <= 59000
         attribute_not_exists(h_gone)
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('an expired holder is reclaimed, with its rates, once an ask would be denied', () => {
    const ask = askEntry([SLOTS], { slots: 3_000 }, { leaseId: 'other', holder: holderOf() });
    expect(requestFor(held, [ask], { nowMs: NOW_MS + 60_000 })).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--"
      ADD wc 1, un 1, b_rpm_tk 4000, b_rpm_tc -4000, b_slots_tk 1000
      REMOVE h_lease
      IF rf = 1799999999000
         w <> "own-write-id--"
         h_lease = "1800000060000|slots=1000|+rpm=4000"
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });
});

describe('version, ttl and write ids', () => {
  const ask = askEntry([RPM], { rpm: 1_000 });
  const image = withTokens(seen([RPM]), 9_000);

  test('a write adopts the version of a newer config with the same rules, on condition of the version that was seen', () => {
    const newer = askEntry([RPM], { rpm: 1_000 }, { version: { sequence: 2, openedAtMs: 0 } });
    expect(requestFor(image, [newer])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", cv = "2"
      ADD wc 1, ac 1, b_rpm_tk -1000, b_rpm_tc 1000
      IF rf = 1799999999000
         w <> "own-write-id--"
         (attribute_not_exists(pz) OR pz <= 1800000000000)
         b_rpm_tk >= 0
         b_rpm_tk <= 59000
         cv = "1"
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a write renews the ttl once half of the life has passed', () => {
    expect(requestFor({ ...image, ttlSec: NOW_MS / 1_000 + 1_799 }, [ask])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", ttl = 1800003600
      ADD wc 1, ac 1, b_rpm_tk -1000, b_rpm_tc 1000
      IF rf = 1799999999000
         w <> "own-write-id--"
         (attribute_not_exists(pz) OR pz <= 1800000000000)
         b_rpm_tk >= 0
         b_rpm_tk <= 59000
         ttl <= 1800003600
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a write after unanswered writes requires that none of them has landed', () => {
    const ids = { own: 'third', unanswered: ['first', 'second'] };
    expect(requestFor(image, [ask], {}, ids)).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "third"
      ADD wc 1, ac 1, b_rpm_tk -1000, b_rpm_tc 1000
      IF rf = 1799999999000
         w <> "third"
         w <> "first"
         w <> "second"
         (attribute_not_exists(pz) OR pz <= 1800000000000)
         b_rpm_tk >= 0
         b_rpm_tk <= 59000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('a write counts one unit for each started kilobyte of the item', () => {
    expect(requestFor({ ...image, bytes: 2_049 }, [ask])).toContain('ADD wc 3,');
    expect(requestFor({ ...image, bytes: 2_048 }, [ask])).toContain('ADD wc 2,');
  });
});
