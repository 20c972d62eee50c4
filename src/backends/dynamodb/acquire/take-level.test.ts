import { expect, test, vi } from 'vitest';
import {
  amount,
  askEntry,
  holderOf,
  imageOf,
  KEY,
  NOW_MS,
  NS,
} from '../../../../tests/support/dynamodb/shard/shard-images.js';
import { TUNING } from '../../../../tests/support/dynamodb/shard/shard-lines.js';
import { BackendUnavailable } from '../../../core/errors.js';
import { Limit } from '../../../core/limit.js';
import type { Executor, WriteAnswer } from '../bucket/executor.js';
import type { ShardImage } from '../table/items.js';
import { PRESSURE } from '../bucket/pressure.js';
import { deadlineIn } from '../../../machine-time.js';
import { BucketShards } from './bucket-shards.js';
import { takeLevel } from './take-level.js';

function executorOf(write: Executor['write'], stored: ShardImage): Executor {
  return {
    ns: NS,
    random: () => 0,
    write,
    writeAll: async () => ({ kind: 'refused' }),
    read: async () => stored,
    readReceipt: async () => null,
    readBuckets: async () => [],
  };
}

test('an ask whose write got no answer ends as id-taken, so that no shard is asked again under its lease id', async () => {
  const slots = Limit.concurrent('slots', 4);
  const free = imageOf([slots], { shardCount: 2 });
  const full = { ...free, writeId: 'other-write-id', limits: free.limits.map((one) => ({ ...one, tokensMilli: 0 })) };
  const answers: WriteAnswer[] = [
    { kind: 'no-answer', unsent: false, error: new BackendUnavailable('no answer', 'timeout') },
    { kind: 'refused', image: full },
  ];
  const write = vi.fn<Executor['write']>(async () => answers.shift() ?? { kind: 'refused', image: full });
  const bucket = new BucketShards(executorOf(write, full), KEY, PRESSURE);
  bucket.shard(0).see(free, NOW_MS);
  const { level } = askEntry([slots], { slots: 1_000 }, { holder: holderOf({ slots: [amount('slots', 1_000)] }) });
  const call = { namespaceId: NS, nowMs: NOW_MS, timeoutMs: 10_000, tuning: TUNING };
  const outcome = await takeLevel({ call, bucket, level, leaseId: 'mine', deadline: deadlineIn(10_000) });
  expect(outcome).toEqual({ kind: 'id-taken' });
  const asked = new Set(write.mock.calls.map(([key]) => key.shard));
  expect(asked).toEqual(new Set([0]));
});

test.each([
  // Nothing repeats it under its lease id, so its answer stands.
  [1, { kind: 'contended', inDoubt: true }],
  [2, { kind: 'id-taken' }],
])(
  'an ask with a shadow, on %i shards, whose write got no answer, is not repeated under its lease id when other writers refuse it',
  async (shardCount, expected) => {
    const limits = [Limit.concurrent('slots', 4), Limit.perMinute('rpm', 60)];
    // Each refusal shows another base: other processes write, and there is room for the ask.
    const imageAfter = (writes: number): ShardImage =>
      imageOf(limits, { shardCount, baseMs: NOW_MS + writes, writeId: `other-write-${writes}` });
    let writes = 0;
    const executor = executorOf(async () => {
      writes += 1;
      return writes === 1
        ? { kind: 'no-answer', unsent: false, error: new BackendUnavailable('no answer', 'timeout') }
        : { kind: 'refused', image: imageAfter(writes) };
    }, imageAfter(0));
    const bucket = new BucketShards(executor, KEY, PRESSURE);
    for (let shard = 0; shard < shardCount; shard++) bucket.shard(shard).see(imageAfter(0), NOW_MS);
    const holder = holderOf({ slots: [amount('slots', 1_000)] });
    const { level } = askEntry(limits, { slots: 1_000, rpm: 1_000 }, { holder });
    const asks = level.asks.map((ask) => (ask.name === 'rpm' ? { ...ask, shadow: true as const } : ask));
    const call = { namespaceId: NS, nowMs: NOW_MS, timeoutMs: 10_000, tuning: TUNING };
    const asking = { call, bucket, level: { ...level, asks }, leaseId: 'mine', deadline: deadlineIn(10_000) };
    expect(await takeLevel(asking)).toEqual(expected);
  },
);

test('a stored number that this code never writes rejects the callers, and the shard answers the next ones', async () => {
  const rpm = Limit.perMinute('rpm', 60);
  const sound = imageOf([rpm]);
  const broken = { ...sound, limits: sound.limits.map((one) => ({ ...one, tokensMilli: 1.5 })) };
  const answers: WriteAnswer[] = [
    { kind: 'refused', image: broken },
    { kind: 'written', image: sound },
  ];
  const executor = executorOf(async () => answers.shift() ?? { kind: 'refused', image: broken }, sound);
  const bucket = new BucketShards(executor, KEY, PRESSURE);
  const { level } = askEntry([rpm], { rpm: 1_000 });
  const call = { namespaceId: NS, nowMs: NOW_MS, timeoutMs: 10_000, tuning: TUNING };
  const asking = { call, bucket, level, leaseId: null, deadline: deadlineIn(10_000) };
  await expect(takeLevel(asking)).rejects.toThrow(RangeError);
  expect(bucket.busy).toBe(false);
  expect(await takeLevel(asking)).toMatchObject({ kind: 'granted' });
});
