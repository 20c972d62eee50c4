import { expect, test, vi } from 'vitest';
import {
  amount,
  askEntry,
  holderOf,
  imageOf,
  KEY,
  NOW_MS,
  NS,
} from '../../../../tests/support/dynamodb/shard-images.js';
import { TUNING } from '../../../../tests/support/dynamodb/shard-lines.js';
import { BackendUnavailable } from '../../../core/errors.js';
import { Limit } from '../../../core/limit.js';
import type { Executor, WriteAnswer } from '../bucket/executor.js';
import { PRESSURE } from '../bucket/pressure.js';
import { deadlineIn } from '../../../machine-time.js';
import { BucketShards } from './bucket-shards.js';
import { takeLevel } from './take-level.js';

test('an ask whose write got no answer ends as id-taken, so that no shard is asked again under its lease id', async () => {
  const slots = Limit.concurrent('slots', 4);
  const free = imageOf([slots], { shardCount: 2 });
  const full = { ...free, writeId: 'other-write-id', limits: free.limits.map((one) => ({ ...one, tokensMilli: 0 })) };
  const answers: WriteAnswer[] = [
    { kind: 'no-answer', unsent: false, error: new BackendUnavailable('no answer', 'timeout') },
    { kind: 'refused', image: full },
  ];
  const write = vi.fn<Executor['write']>(async () => answers.shift() ?? { kind: 'refused', image: full });
  const executor: Executor = {
    ns: NS,
    random: () => 0,
    write,
    writeAll: async () => ({ kind: 'refused' }),
    read: async () => full,
    readReceipt: () => Promise.resolve(null),
    readBuckets: async () => [],
  };
  const bucket = new BucketShards(executor, KEY, PRESSURE);
  bucket.shard(0).see(free, NOW_MS);
  const { level } = askEntry([slots], { slots: 1_000 }, { holder: holderOf({ slots: [amount('slots', 1_000)] }) });
  const call = { namespaceId: NS, nowMs: NOW_MS, timeoutMs: 10_000, tuning: TUNING };
  const outcome = await takeLevel({ call, bucket, level, leaseId: 'mine', deadline: deadlineIn(10_000) });
  expect(outcome).toEqual({ kind: 'id-taken' });
  const asked = new Set(write.mock.calls.map(([key]) => key.shard));
  expect(asked).toEqual(new Set([0]));
});

test('a stored number that this code never writes rejects the callers, and the shard answers the next ones', async () => {
  const rpm = Limit.perMinute('rpm', 60);
  const sound = imageOf([rpm]);
  const broken = { ...sound, limits: sound.limits.map((one) => ({ ...one, tokensMilli: 1.5 })) };
  const answers: WriteAnswer[] = [
    { kind: 'refused', image: broken },
    { kind: 'written', image: sound },
  ];
  const executor: Executor = {
    ns: NS,
    random: () => 0,
    write: async () => answers.shift() ?? { kind: 'refused', image: broken },
    writeAll: async () => ({ kind: 'refused' }),
    read: async () => sound,
    readReceipt: () => Promise.resolve(null),
    readBuckets: async () => [],
  };
  const bucket = new BucketShards(executor, KEY, PRESSURE);
  const { level } = askEntry([rpm], { rpm: 1_000 });
  const call = { namespaceId: NS, nowMs: NOW_MS, timeoutMs: 10_000, tuning: TUNING };
  const asking = { call, bucket, level, leaseId: null, deadline: deadlineIn(10_000) };
  await expect(takeLevel(asking)).rejects.toThrow(RangeError);
  expect(bucket.busy).toBe(false);
  expect(await takeLevel(asking)).toMatchObject({ kind: 'granted' });
});
