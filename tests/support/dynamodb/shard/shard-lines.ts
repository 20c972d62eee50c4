import type { Tuning } from '../../../../src/backend.js';
import { BucketCache } from '../../../../src/backends/dynamodb/acquire/bucket-shards.js';
import { sendGroup, Shard } from '../../../../src/backends/dynamodb/acquire/shard.js';
import type { Entry, EntryResult } from '../../../../src/backends/dynamodb/bucket/group/entries.js';
import { PRESSURE } from '../../../../src/backends/dynamodb/bucket/pressure.js';
import { deadlineIn } from '../../../../src/machine-time.js';
import type { Table } from '../../../../src/backends/dynamodb/client/requests.js';
import type { Operation, Operations } from '../../../../src/backends/dynamodb/client/transport.js';
import { DynamoDBExecutor } from '../../../../src/backends/dynamodb/expressions/dynamodb-executor.js';
import { KEY } from './shard-images.js';
import { quickRandom } from '../quick-random.js';

/** Without the deny cache, so that the store gives every answer. */
export const TUNING: Tuning = { maxRetries: 5, denyCacheMs: 0, bucketLifeFactor: 7, configCacheMs: 60_000 };

/** The buckets that one process knows. */
export function openBuckets(table: Table): BucketCache {
  return new BucketCache((ns) => new DynamoDBExecutor(table, ns), table.random, PRESSURE);
}

/** One shard as one process knows it. */
export interface Process {
  readonly shard: Shard;
  submit(entry: Entry, options?: SubmitOptions): Promise<EntryResult>;
  /** Submits all entries as one group. Entries that must wait for the next write are `deferred`. */
  together(entries: readonly Entry[], options?: SubmitOptions): Promise<readonly Told[]>;
}

/** The result of an entry. */
export type Told = EntryResult | { readonly kind: 'rejected'; readonly error: unknown } | { readonly kind: 'deferred' };

interface SubmitOptions {
  readonly tuning?: Partial<Tuning>;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export function openProcess(table: Table, ns: string, number = 0): Process {
  const shard = new Shard(new DynamoDBExecutor(table, ns), { ...KEY, shard: number }, PRESSURE);
  return {
    shard,
    submit: async (entry, { tuning, timeoutMs = 10_000, signal } = {}) =>
      shard.submit(entry, deadlineIn(timeoutMs), { ...TUNING, ...tuning }, signal),
    async together(entries, { tuning, timeoutMs = 10_000 } = {}) {
      const told = new Map<Entry, Told>();
      const group = entries.map((entry) => ({
        entry,
        deadline: deadlineIn(timeoutMs),
        tuning: { ...TUNING, ...tuning },
        resolve: (result: EntryResult) => void told.set(entry, result),
        reject: (error: unknown) => void told.set(entry, { kind: 'rejected', error }),
      }));
      for (const { entry } of await sendGroup(shard, group)) told.set(entry, { kind: 'deferred' });
      return entries.map((entry) => told.get(entry)!);
    },
  };
}

/** Intercepts a request. `forward` sends it. */
export type Tap = (operation: Operation, forward: () => Promise<unknown>) => Promise<unknown>;

/** The table behind a tap, with short pauses. Write ids use the same random numbers, so they are not constant. */
export function tapped(table: Table, tap: Tap): Table {
  const { transport } = table;
  return {
    ...table,
    random: quickRandom,
    transport: {
      ...transport,
      send: async <Op extends Operation>(operation: Op, input: Operations[Op][0], deadline: number) =>
        (await tap(operation, async () => transport.send(operation, input, deadline))) as Operations[Op][1],
    },
  };
}

/** The error of the SDK when a connection breaks. */
export function connectionBroken(): Error {
  return Object.assign(new Error('socket hang up'), { name: 'TimeoutError', code: 'ECONNRESET' });
}

interface Losing {
  /** Whether the store gets the request before the connection breaks. */
  readonly lands: boolean;
  /** The number of lost writes, 1 unless given. */
  readonly times?: number;
  /** The number of writes that are forwarded before. */
  readonly after?: number;
  /** Runs before the connection breaks. */
  readonly meanwhile?: () => Promise<unknown>;
}

/** Loses writes, and forwards all other requests. */
export function losing({ lands, times = 1, after = 0, meanwhile }: Losing): Tap {
  let writes = 0;
  return async (operation, forward) => {
    if (operation !== 'UpdateItem' && operation !== 'PutItem') return forward();
    writes += 1;
    if (writes <= after || writes > after + times) return forward();
    // The answer of the store is not used.
    if (lands) await forward().catch(() => undefined);
    await meanwhile?.();
    throw connectionBroken();
  };
}
