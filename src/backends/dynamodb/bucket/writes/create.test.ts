import { expect, test } from 'vitest';
import { printRequest } from '../../../../../tests/support/dynamodb/printed-requests.js';
import {
  amount,
  imageOf,
  KEY,
  levelOf,
  NOW_MS,
  NS,
  withHolders,
} from '../../../../../tests/support/dynamodb/shard/shard-images.js';
import { Limit } from '../../../../core/limit.js';
import { newBucketImage } from '../new-bucket.js';
import { buildCreate } from '../../../../../tests/support/dynamodb/write-inputs.js';

const TARGET = { tableName: 'headgate', ns: NS };
const RPM = Limit.perMinute('rpm', 100);
const SLOTS = Limit.concurrent('slots', 3);

test('creating a bucket writes the whole item and never replaces one that exists', () => {
  const image = {
    ...newBucketImage(KEY, levelOf([RPM]), NOW_MS),
    ttlSec: 1_800_003_600,
    writeId: 'own',
    writeUnits: 1,
  };
  expect(buildCreate(TARGET, image)).toMatchInlineSnapshot(`
    {
      "ConditionExpression": "attribute_not_exists(PK)",
      "Item": {
        "GSI2PK": {
          "S": "AAAAAAAAAA0/RESOURCE#gpt-4#4",
        },
        "GSI2SK": {
          "S": "BUCKET#user-1#gpt-4#0",
        },
        "GSI3PK": {
          "S": "AAAAAAAAAA0/ENTITY#user-1",
        },
        "GSI3SK": {
          "S": "BUCKET#gpt-4#0",
        },
        "GSI4PK": {
          "S": "AAAAAAAAAA0/ALL#4",
        },
        "GSI4SK": {
          "S": "AAAAAAAAAA0/BUCKET#user-1#gpt-4#0",
        },
        "PK": {
          "S": "AAAAAAAAAA0/BUCKET#user-1#gpt-4#0",
        },
        "SK": {
          "S": "#STATE",
        },
        "ac": {
          "N": "0",
        },
        "b_rpm_cp": {
          "N": "100000",
        },
        "b_rpm_ra": {
          "N": "100000",
        },
        "b_rpm_rp": {
          "N": "60000",
        },
        "b_rpm_tc": {
          "N": "0",
        },
        "b_rpm_tk": {
          "N": "100000",
        },
        "cv": {
          "S": "1",
        },
        "rf": {
          "N": "1800000000000",
        },
        "shard_count": {
          "N": "1",
        },
        "ttl": {
          "N": "1800003600",
        },
        "un": {
          "N": "0",
        },
        "w": {
          "S": "own",
        },
        "wc": {
          "N": "1",
        },
      },
      "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
      "TableName": "headgate",
    }
  `);
});

test('a bucket that is created with a holder is on the sweep list', () => {
  const held = { lease: { slots: [amount('slots', 1_000)], caller: 'job' } };
  expect(printRequest(buildCreate(TARGET, withHolders(imageOf([SLOTS]), held)))).toMatchInlineSnapshot(`
    "headgate AAAAAAAAAA0/BUCKET#user-1#gpt-4#0 #STATE
    PUT rf 1799999940000, shard_count 1, cv "1", w "seen-write-id-", wc 7, ac 3, un 0, ttl 1800086400, b_slots_tk 3000, b_slots_cp 3000, b_slots_ra 0, b_slots_rp 0, h_lease "1800000060000|slots=1000||job", GSI1PK "AAAAAAAAAA0/SWEEP", GSI1SK "AAAAAAAAAA0/BUCKET#user-1#gpt-4#0", GSI2PK "AAAAAAAAAA0/RESOURCE#gpt-4#4", GSI2SK "BUCKET#user-1#gpt-4#0", GSI3PK "AAAAAAAAAA0/ENTITY#user-1", GSI3SK "BUCKET#gpt-4#0", GSI4PK "AAAAAAAAAA0/ALL#4", GSI4SK "AAAAAAAAAA0/BUCKET#user-1#gpt-4#0"
    IF attribute_not_exists(PK)
    RETURN nothing, else ALL_OLD"
  `);
});

test('a bucket of per-call limits is indexed under the plain name of its resource', () => {
  const { Item = {} } = buildCreate(TARGET, imageOf([RPM], { key: { ...KEY, resource: 'gpt-4~abcdefgh' } }));
  expect(Item['PK']).toEqual({ S: `${NS}/BUCKET#user-1#gpt-4~abcdefgh#0` });
  expect(Item['GSI2PK']?.S).toMatch(/\/RESOURCE#gpt-4#[0-9a-f]$/);
  expect(Item['GSI2SK']).toEqual({ S: 'BUCKET#user-1#gpt-4~abcdefgh#0' });
});

test('a bucket with its own limits is created without a ttl', () => {
  const image = newBucketImage(KEY, levelOf([RPM], { lasting: true }), NOW_MS);
  expect(buildCreate(TARGET, image).Item).not.toHaveProperty('ttl');
});
