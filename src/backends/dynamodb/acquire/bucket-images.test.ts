import { expect, test, vi } from 'vitest';
import { askEntry, imageOf, KEY, NOW_MS, NS } from '../../../../tests/support/dynamodb/shard/shard-images.js';
import { TUNING } from '../../../../tests/support/dynamodb/shard/shard-lines.js';
import { Limit } from '../../../core/limit.js';
import { deadlineIn } from '../../../machine-time.js';
import type { Executor, WriteAnswer } from '../bucket/executor.js';
import { PRESSURE } from '../bucket/pressure.js';
import { readShards } from './bucket-images.js';
import { BucketShards } from './bucket-shards.js';

test('a shard that has no image while a write is under way is read once', async () => {
  const limits = [Limit.perDay('rpd', 100)];
  const images = [0, 1].map((shard) => imageOf(limits, { shardCount: 2, key: { ...KEY, shard } }));
  let land!: (answer: WriteAnswer) => void;
  const answer = new Promise<WriteAnswer>((resolve) => (land = resolve));
  const read = vi.fn<Executor['read']>(async ({ shard }) => images[shard] ?? null);
  const executor: Executor = {
    ns: NS,
    random: () => 0,
    write: async () => answer,
    writeAll: async () => ({ kind: 'refused' }),
    read,
    readReceipt: async () => null,
    readBuckets: async () => [],
  };
  const bucket = new BucketShards(executor, KEY, PRESSURE);
  for (const [shard, image] of images.entries()) bucket.shard(shard).see(image, NOW_MS);
  const asked = bucket.submit(1, askEntry(limits, { rpd: 1_000 }), deadlineIn(10_000), TUNING);
  await vi.waitFor(() => expect(bucket.busy).toBe(true));
  // As a split, a transaction or an extend of this process does.
  bucket.forgetShard(1);
  await readShards(bucket, NOW_MS, deadlineIn(10_000), TUNING.denyCacheMs);
  expect(read).toHaveBeenCalledTimes(2);
  expect(bucket.all().map(({ image }) => image)).toEqual(images);
  land({ kind: 'written', image: images[1]! });
  expect(await asked).toMatchObject({ result: { kind: 'granted' } });
});
