import { BucketCache } from '../../../../src/backends/dynamodb/acquire/bucket-shards.js';
import type { Executor } from '../../../../src/backends/dynamodb/bucket/executor.js';
import { PRESSURE } from '../../../../src/backends/dynamodb/bucket/pressure.js';
import type { ShardImage } from '../../../../src/backends/dynamodb/table/items.js';
import { FlatRecord } from './flat-record.js';
import type { SharedTable } from '../workloads/line-rules.js';

/** A table with one record, in memory: the real code above the seam of conditional writes, without requests. */
export function recordTable(image: ShardImage): SharedTable {
  const record = new FlatRecord(image);
  const ns = 'record';
  const current = (): ShardImage => {
    if (record.image === null) throw new Error('The record does not exist');
    return record.image;
  };
  const executor: Executor = {
    ns,
    random: Math.random,
    write: async (_, write) =>
      record.write(write) ? { kind: 'written', image: current() } : { kind: 'refused', image: record.image },
    writeAll: () => Promise.reject(new Error('There are no transactions on one record')),
    read: () => Promise.resolve(record.image),
    readReceipt: () => Promise.resolve(null),
    readBuckets: (refs) => Promise.resolve(refs.map(() => [current()])),
  };
  return { ns, open: () => new BucketCache(() => executor, Math.random, PRESSURE), read: async () => current() };
}
