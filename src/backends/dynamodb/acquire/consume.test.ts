import { expect, test } from 'vitest';
import { FlatRecord } from '../../../../tests/support/dynamodb/shard/flat-record.js';
import {
  imageOf,
  KEY,
  levelOf,
  NOW_MS,
  NS,
  withTokens,
} from '../../../../tests/support/dynamodb/shard/shard-images.js';
import { TUNING } from '../../../../tests/support/dynamodb/shard/shard-lines.js';
import type { ConsumeRequest } from '../../../backend.js';
import type { AskedAmount } from '../../../core/bucket/decide.js';
import { BackendUnavailable } from '../../../core/errors.js';
import { Limit } from '../../../core/limit.js';
import type { Executor } from '../bucket/executor.js';
import { PRESSURE } from '../bucket/pressure.js';
import { BucketCache } from './bucket-shards.js';
import { consume } from './consume.js';

const LIMITS = [Limit.perDay('rpd', 100)];
const THROTTLED = new BackendUnavailable('BatchGetItem: throttled', 'throttled');

/** A user without tokens and a parent with all, on a store that answers writes and throttles reads of several buckets. */
function throttledReads() {
  const keys = ['user-1', 'org'].map((entityId) => ({ ...KEY, entityId }));
  const images = keys.map((key) => imageOf(LIMITS, { key, baseMs: NOW_MS }));
  const records = new Map(
    images.map((image) => {
      const { entityId } = image.key;
      return [entityId, new FlatRecord(entityId === 'org' ? image : withTokens(image, 0))];
    }),
  );
  const executor: Executor = {
    ns: NS,
    random: Math.random,
    write: async ({ entityId }, write) => {
      const record = records.get(entityId)!;
      return { kind: record.write(write) ? 'written' : 'refused', image: record.image! };
    },
    writeAll: async () => ({ kind: 'refused' }),
    read: async ({ entityId }) => records.get(entityId)!.image,
    readReceipt: async () => null,
    readBuckets: async () => Promise.reject(THROTTLED),
  };
  const reported: unknown[] = [];
  const ask = async (asked: AskedAmount, changes: Partial<ConsumeRequest> = {}) => {
    const levels = keys.map(({ entityId }) => ({ ...levelOf(LIMITS), entityId, asks: [asked], holder: null }));
    const tuning = { ...TUNING, onError: (error: unknown, where: string) => void reported.push([error, where]) };
    const call = { namespaceId: NS, nowMs: NOW_MS + 5, timeoutMs: 10_000, tuning };
    const cache = new BucketCache(() => executor, Math.random, PRESSURE);
    return consume(cache, call, { leaseId: null, levels, ...changes });
  };
  return { ask, reported };
}

test.each([
  ['a whole ask', { name: 'rpd', milli: 1_000 }, {}],
  ['an ask that may be cut', { name: 'rpd', milli: 5_000, atMost: true } as const, { atMost: 'rpd' }],
])('%s that the store has denied stays denied if another level cannot be read', async (_, asked, changes) => {
  const { ask, reported } = throttledReads();
  const outcome = await ask(asked, changes);
  expect(outcome).toMatchObject({
    kind: 'denied',
    reason: 'exhausted',
    levels: [{ verdicts: [{ limit: LIMITS[0] }] }, {}],
  });
  expect(reported).toEqual([[THROTTLED, 'reading the levels of a denied ask']]);
});
