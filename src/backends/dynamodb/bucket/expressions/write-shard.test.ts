import { describe, expect, test } from 'vitest';
import { printRequest } from '../../../../../tests/support/printed-requests.js';
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
} from '../../../../../tests/support/shard-images.js';
import { Limit } from '../../../../core/limit.js';
import type { Entry } from '../entries.js';
import { type PlanContext, planGroup } from '../plan-group.js';
import type { ShardImage } from '../../table/items.js';
import type { WriteIds } from './shard-update.js';
import { buildShardWrite } from './write-shard.js';

const RPM = Limit.perMinute('rpm', 60);
const TPM = Limit.perMinute('tpm', 6_000);
const SLOTS = Limit.concurrent('slots', 3);
const IDS: WriteIds = { own: 'own-write-id--', unanswered: [] };
const EXACT: PlanContext = { nowMs: NOW_MS, trust: 'exact', lifeFactor: 7, withoutRefunds: false };

/** Its base was a second ago: one token of `rpm` has come since, 100 of `tpm`. */
const seen = (limits: readonly Limit[], changes: Partial<ShardImage> = {}): ShardImage =>
  imageOf(limits, { baseMs: NOW_MS - 1_000, ...changes });

/** What a group leads to. */
function inputFor(image: ShardImage, entries: readonly Entry[], at: Partial<PlanContext> = {}, ids = IDS) {
  const plan = planGroup(image, entries, { ...EXACT, ...at });
  if (plan.kind !== 'write' && plan.kind !== 'reclaim') throw new Error(`It leads to ${plan.kind}`);
  return buildShardWrite({ tableName: 'headgate', ns: NS }, image, plan.move, ids);
}

const requestFor = (...group: Parameters<typeof inputFor>): string => printRequest(inputFor(...group));

describe('a take', () => {
  test('is one request with generated aliases', () => {
    const image = withTokens(seen([RPM]), 10_000);
    expect(inputFor(image, [askEntry([RPM], { rpm: 1_000 })])).toMatchInlineSnapshot(`
      {
        "ConditionExpression": "rf = :v0 AND w <> :v1 AND b_rpm_tk >= :v3 AND b_rpm_tk <= :v4",
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
            "N": "0",
          },
          ":v4": {
            "N": "59000",
          },
          ":v5": {
            "N": "-1000",
          },
          ":v6": {
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
        "UpdateExpression": "SET w = :v1 ADD wc :v2, ac :v2, b_rpm_tk :v5, b_rpm_tc :v6",
      }
    `);
  });

  test('from a bucket with room adds, under both bounds', () => {
    const image = withTokens(seen([RPM]), 10_000);
    expect(requestFor(image, [askEntry([RPM], { rpm: 1_000 })])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--"
      ADD wc 1, ac 1, b_rpm_tk -1000, b_rpm_tc 1000
      IF rf = 1799999999000
         w <> "own-write-id--"
         b_rpm_tk >= 0
         b_rpm_tk <= 59000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('from a full bucket sets what is left below the brim', () => {
    expect(requestFor(seen([RPM]), [askEntry([RPM], { rpm: 1_000 })])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", b_rpm_tk = 58000
      ADD wc 1, ac 1, b_rpm_tc 1000
      IF rf = 1799999999000
         w <> "own-write-id--"
         b_rpm_tk >= 59000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('of several limits has the form that each of them needs; limits that are not taken are not touched', () => {
    const image = withTokens(seen([RPM, TPM, Limit.perDay('daily', 5)]), 10_000);
    const asks = [askEntry([RPM, TPM], { rpm: 1_000, tpm: 300_000 }), askEntry([RPM, TPM], { rpm: 2_000 })];
    expect(requestFor(image, asks)).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", b_tpm_tk = 5600000, ttl = 1800518452
      ADD wc 1, ac 2, b_rpm_tk -3000, b_rpm_tc 3000, b_tpm_tc 300000
      IF rf = 1799999999000
         w <> "own-write-id--"
         b_rpm_tk >= 2000
         b_rpm_tk <= 59000
         b_tpm_tk >= 5900000
         ttl <= 1800518452
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('of nothing needs a balance that is not negative', () => {
    expect(requestFor(withTokens(seen([RPM]), 5_000), [askEntry([RPM], { rpm: 0 })])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--"
      ADD wc 1, ac 1
      IF rf = 1799999999000
         w <> "own-write-id--"
         b_rpm_tk >= -1000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('of more than there is by an old image is sent all the same: the store will say', () => {
    const image = withTokens(seen([RPM]), -5_000);
    const ask = askEntry([RPM], { rpm: 1_000 });
    expect(requestFor(image, [ask], { trust: 'guess' })).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--"
      ADD wc 1, ac 1, b_rpm_tk -1000, b_rpm_tc 1000
      IF rf = 1799999999000
         w <> "own-write-id--"
         b_rpm_tk >= 0
         b_rpm_tk <= 59000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });
});

describe('a correction', () => {
  test('that takes more goes into debt, as far as the bucket is kept until the debt is over', () => {
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

  test('that gives back adds, under no bounds but the base', () => {
    expect(requestFor(seen([RPM]), [changeEntry([RPM], { rpm: -5_000 })])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--"
      ADD wc 1, b_rpm_tk 5000, b_rpm_tc -5000
      IF rf = 1799999999000
         w <> "own-write-id--"
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('that undoes a grant counts it off', () => {
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

describe('a holder', () => {
  const held = withHolders(withTokens(seen([RPM, SLOTS]), 30_000, 2_000), {
    lease: { slots: [amount('slots', 1_000)], rates: [amount('rpm', 4_000)] },
  });

  test('comes with its take, and puts the shard on the list of the reconciler', () => {
    const holder = holderOf({ slots: [amount('slots', 1_000)], caller: 'job' });
    const ask = askEntry([SLOTS], { slots: 1_000 }, { leaseId: 'lease', holder });
    expect(requestFor(seen([SLOTS]), [ask])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", h_lease = "1800000060000|slots=1000||job", GSI1PK = "AAAAAAAAAA0/SWEEP", GSI1SK = "AAAAAAAAAA0/BUCKET#user-1#gpt-4#0"
      ADD wc 1, ac 1, b_slots_tk -1000
      IF rf = 1799999999000
         w <> "own-write-id--"
         b_slots_tk >= 1000
         attribute_not_exists(h_lease)
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('does not put it there twice', () => {
    const ask = askEntry([SLOTS], { slots: 1_000 }, { leaseId: 'lease', holder: holderOf() });
    expect(requestFor(seen([SLOTS], { onSweepList: true }), [ask])).not.toContain('GSI1');
  });

  test('is extended under the value that was seen', () => {
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

  test('goes with its slots and with the refund', () => {
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

  test('stays with its new totals', () => {
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

  test('that an old image lacks must really be gone before the whole amount is charged again', () => {
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

  test('that has expired is taken back, with its rates, once somebody is refused', () => {
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

describe('besides, a write', () => {
  const ask = askEntry([RPM], { rpm: 1_000 });
  const image = withTokens(seen([RPM]), 9_000);

  test('leaves the version of a newer config that says the same, under the one that was seen', () => {
    const newer = askEntry([RPM], { rpm: 1_000 }, { version: { sequence: 2, openedAtMs: 0 } });
    expect(requestFor(image, [newer])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", cv = "2"
      ADD wc 1, ac 1, b_rpm_tk -1000, b_rpm_tc 1000
      IF rf = 1799999999000
         w <> "own-write-id--"
         b_rpm_tk >= 0
         b_rpm_tk <= 59000
         cv = "1"
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('gives a bucket of which half of the life is over a new one', () => {
    expect(requestFor({ ...image, ttlSec: NOW_MS / 1_000 + 1_799 }, [ask])).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "own-write-id--", ttl = 1800003600
      ADD wc 1, ac 1, b_rpm_tk -1000, b_rpm_tc 1000
      IF rf = 1799999999000
         w <> "own-write-id--"
         b_rpm_tk >= 0
         b_rpm_tk <= 59000
         ttl <= 1800003600
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('that follows upon others without an answer must follow upon none of them', () => {
    const ids = { own: 'third', unanswered: ['first', 'second'] };
    expect(requestFor(image, [ask], {}, ids)).toMatchInlineSnapshot(`
      "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
      SET w = "third"
      ADD wc 1, ac 1, b_rpm_tk -1000, b_rpm_tc 1000
      IF rf = 1799999999000
         w <> "third"
         w <> "first"
         w <> "second"
         b_rpm_tk >= 0
         b_rpm_tk <= 59000
      RETURN ALL_NEW, else ALL_OLD"
    `);
  });

  test('to an item of more than a kilobyte counts a unit for each that is started', () => {
    expect(requestFor({ ...image, bytes: 2_049 }, [ask])).toContain('ADD wc 3,');
    expect(requestFor({ ...image, bytes: 2_048 }, [ask])).toContain('ADD wc 2,');
  });
});
