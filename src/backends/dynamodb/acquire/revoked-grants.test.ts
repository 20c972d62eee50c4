import { expect, test } from 'vitest';
import { FlatRecord } from '../../../../tests/support/dynamodb/shard/flat-record.js';
import {
  amount,
  holderOf,
  imageOf,
  KEY,
  levelOf,
  NOW_MS,
  NS,
  withHolders,
  withTokens,
} from '../../../../tests/support/dynamodb/shard/shard-images.js';
import { TUNING } from '../../../../tests/support/dynamodb/shard/shard-lines.js';
import type { Holder } from '../../../core/bucket/decide.js';
import { BackendUnavailable } from '../../../core/errors.js';
import { Limit } from '../../../core/limit.js';
import { deadlineIn } from '../../../machine-time.js';
import type { Executor, WriteAnswer } from '../bucket/executor.js';
import { PRESSURE } from '../bucket/pressure.js';
import { BucketShards } from './bucket-shards.js';
import { Revocations } from './revocations.js';
import { takeLevel } from './take-level.js';

const RPD = Limit.perDay('rpd', 100);
const SLOTS = Limit.concurrent('slots', 4);
const LOST: WriteAnswer = {
  kind: 'no-answer',
  unsent: false,
  error: new BackendUnavailable('no answer', 'timeout'),
};

/** A bucket over flat records, whose lost grants are given back by `finish`. `meet` answers a write in place of its record. */
function openBucket(records: readonly FlatRecord[], meet: (shard: number, at: number) => WriteAnswer | null) {
  let writes = 0;
  const executor: Executor = {
    ns: NS,
    random: Math.random,
    write: async ({ shard }, write) => {
      const record = records[shard];
      const met = meet(shard, writes++);
      if (met !== null) return met;
      const isWritten = record?.write(write) === true;
      const image = record?.image ?? null;
      return isWritten && image !== null ? { kind: 'written', image } : { kind: 'refused', image };
    },
    writeAll: async () => ({ kind: 'refused' }),
    read: async ({ shard }) => records[shard]?.image ?? null,
    readReceipt: async () => null,
    readBuckets: async () => [],
  };
  const revocations = new Revocations(Math.random);
  const bucket = new BucketShards(executor, KEY, PRESSURE, revocations);
  const take = async (limits: readonly Limit[], amounts: Readonly<Record<string, number>>, holder: Holder) => {
    const asks = Object.entries(amounts).map(([name, milli]) => amount(name, milli));
    const call = { namespaceId: NS, nowMs: NOW_MS, timeoutMs: 10_000, tuning: { ...TUNING, denyCacheMs: 1_000 } };
    const level = { ...levelOf(limits), asks, holder };
    return takeLevel({ call, bucket, level, leaseId: 'drawn-twice', deadline: deadlineIn(10_000) });
  };
  return { bucket, take, finish: async () => revocations.finish() };
}

test('an ask whose id another lease has drawn meanwhile does not remove the holder of that lease', async () => {
  const free = imageOf([SLOTS], { baseMs: NOW_MS });
  const others = withTokens(
    withHolders(free, { 'drawn-twice': { slots: [amount('slots', 3_000)], caller: 'another' } }),
    1_000,
  );
  const record = new FlatRecord({ ...others, writeId: 'other-write-id' });
  const { bucket, take, finish } = openBucket([record], (_, at) => (at === 0 ? LOST : null));
  bucket.shard(0).see(free, NOW_MS);
  const outcome = await take([SLOTS], { slots: 1_000 }, holderOf({ slots: [amount('slots', 1_000)] }));
  expect(outcome).toEqual({ kind: 'id-taken' });
  await finish();
  expect([...record.image!.holders.keys()]).toEqual(['drawn-twice']);
  expect(record.image!.limits[0]!.tokensMilli).toBe(1_000);
});

test('parts of one ask that would meet on one shard are given back once, and the ask needs another id', async () => {
  const [first, second] = [0, 1].map((shard) =>
    imageOf([RPD], { key: { ...KEY, shard }, shardCount: 2, baseMs: NOW_MS }),
  );
  // Another process has merged shard 1 into shard 0, which has the first part by then.
  const record = new FlatRecord(first!);
  let parts = 0;
  const { bucket, take, finish } = openBucket([record], (shard) => {
    if (shard === 1) return { kind: 'refused', image: null };
    parts += 1;
    return parts === 2 ? LOST : null;
  });
  bucket.shard(0).see(first!, NOW_MS);
  bucket.shard(1).see(second!, NOW_MS);
  const outcome = await take([RPD], { rpd: 90_000 }, holderOf({}));
  await finish();
  expect(outcome).toEqual({ kind: 'id-taken' });
  expect(record.image!.holders.size).toBe(0);
  expect(record.image!.limits[0]).toMatchObject({ consumedMilli: 0, tokensMilli: 50_000 });
});
