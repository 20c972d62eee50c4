import { expect, test } from 'vitest';
import { FlatRecord } from '../../../../../tests/support/dynamodb/shard/flat-record.js';
import {
  amount,
  askEntry,
  holderOf,
  imageOf,
  KEY,
  NOW_MS,
  NS,
  withTokens,
} from '../../../../../tests/support/dynamodb/shard/shard-images.js';
import { Limit } from '../../../../core/limit.js';
import type { ShardImage } from '../../table/items.js';
import type { Entry } from './entries.js';
import { planGroup, planReclaim } from './plan-group.js';
import { undoOf } from './revocation.js';
import { buildShardWrite, type ShardWrite } from '../shard-write.js';

const RPM = Limit.perMinute('rpm', 60);
const EXPIRES_MS = NOW_MS + 1_000;

/** Writes one entry, planned on the stored record. */
function write(record: FlatRecord, entry: Entry): void {
  const image = record.image!;
  const at = { nowMs: entry.nowMs, trust: 'exact', lifeFactor: 7, withoutRefunds: false } as const;
  const plan = planGroup(image, [entry], at);
  if (plan.kind === 'write') send(record, image, plan.write);
}

function send(record: FlatRecord, image: ShardImage, change: ShardWrite): void {
  const ids = { own: `write-${image.writeUnits}`, unanswered: [] };
  expect(record.write(buildShardWrite(NS, image, change, ids))).toBe(true);
}

test.each([
  ['refund', [amount('rpm', 5_000)]],
  ['keep', null],
] as const)('an undo gives rates back once if the holder expired before it (onExpiry: %s)', (_, rates) => {
  const record = new FlatRecord(withTokens(imageOf([RPM], { key: KEY, baseMs: NOW_MS }), 30_000));
  const holder = holderOf({ expiresAtMs: EXPIRES_MS, rates });
  const ask = askEntry([RPM], { rpm: 5_000 }, { leaseId: 'lease', holder });
  const granted = planGroup(record.image!, [ask], {
    nowMs: NOW_MS,
    trust: 'exact',
    lifeFactor: 7,
    withoutRefunds: false,
  });
  if (granted.kind !== 'write' || granted.results[0]?.kind !== 'granted') throw new Error('The ask was not granted');
  send(record, record.image!, granted.write);
  expect(record.image?.limits[0]).toMatchObject({ tokensMilli: 25_000, consumedMilli: 5_000 });

  send(record, record.image!, planReclaim(record.image!, EXPIRES_MS));
  const level = undoOf(ask.level, granted.results[0].answer);
  write(record, { kind: 'change', level, leaseId: 'lease', nowMs: EXPIRES_MS, uncounts: true });
  expect(record.image?.limits[0]).toMatchObject({ tokensMilli: 30_000, consumedMilli: 0 });
});
