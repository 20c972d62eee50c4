import type { Backend } from '../../../../src/backend.js';
import { BucketCache } from '../../../../src/backends/dynamodb/acquire/bucket-shards.js';
import { adjust } from '../../../../src/backends/dynamodb/acquire/change-level.js';
import { consume } from '../../../../src/backends/dynamodb/acquire/consume.js';
import { extend } from '../../../../src/backends/dynamodb/acquire/extend.js';
import type { Executor, WriteAnswer } from '../../../../src/backends/dynamodb/bucket/executor.js';
import { PRESSURE } from '../../../../src/backends/dynamodb/bucket/pressure.js';
import type { ShardImage } from '../../../../src/backends/dynamodb/table/items.js';
import { memory } from '../../../../src/backends/embedded/memory.js';
import { type Amount, amountOf } from '../../../../src/core/bucket/decide.js';
import { BackendUnavailable } from '../../../../src/core/errors.js';
import type { Limit } from '../../../../src/core/limit.js';
import { type Deadline, sleep, timeLeftMs } from '../../../../src/machine-time.js';
import { Random } from '../../../../src/testing/conformance/kit/random.js';
import { FlatRecord } from './flat-record.js';
import { foreignWrite } from '../group/foreign-writes.js';
import { imageOf, KEY, NOW_MS } from './shard-images.js';

/**
 * What happens to one write. `throttled on`: and all later writes to this shard until the deadline. `slow`: it lands, and is
 * answered at the last instant. `stalled`: it gets no answer until the deadline. `reclaimed`: another process takes the
 * holder of the lease back before. `refused`: another process writes before.
 */
export const WRITE_FAULTS = [
  'none',
  'refused',
  'denied',
  'throttled',
  'throttled on',
  'lost, landed',
  'lost, not landed',
  'stalled, landed',
  'stalled, not landed',
  'slow',
  'reclaimed',
] as const;

export type WriteFault = (typeof WRITE_FAULTS)[number];

/** One bucket in several shards, each one flat record of this process, behind the acquire path of DynamoDB. */
export interface ShardedStore {
  readonly backend: Backend;
  /** The faults of the next writes. After them, writes are answered. */
  readonly start: (faults: readonly WriteFault[]) => void;
  /** The faults that a write has met. */
  readonly met: Set<WriteFault>;
  readonly images: () => readonly ShardImage[];
  /** What the lease has taken of a limit over all shards, in millitokens: without what other processes took. */
  readonly takenMilli: (name: string) => number;
  /** The slots that are free or held, over all shards. */
  readonly slotsMilli: (name: string) => number;
}

const LOST = new BackendUnavailable('no answer', 'timeout');
const THROTTLED = new BackendUnavailable('throttled', 'throttled');

export function shardedStore(limits: readonly Limit[], shardCount: number): ShardedStore {
  const keys = Array.from({ length: shardCount }, (_, shard) => ({ ...KEY, shard }));
  const records = keys.map((key) => new FlatRecord(imageOf(limits, { key, shardCount, baseMs: NOW_MS }), key));
  const images = (): readonly ShardImage[] => records.map(({ image }) => image!);
  let faults: WriteFault[] = [];
  const met = new Set<WriteFault>();
  const busyUntil = new Map<number, Deadline>();
  const foreign = new Map<string, number>();
  let writes = 0;

  const interfere = (shard: number): void => {
    const before = records[shard]!.image!;
    const write = foreignWrite(before, 'take', undefined, (writes += 1));
    if (write === null || !records[shard]!.write(write)) return;
    for (const [at, { limit, consumedMilli }] of records[shard]!.image!.limits.entries()) {
      const took = Number(consumedMilli) - Number(before.limits[at]!.consumedMilli);
      foreign.set(limit.name, (foreign.get(limit.name) ?? 0) + took);
    }
  };
  const reclaim = (shard: number): void => {
    const image = records[shard]!.image!;
    records[shard] = new FlatRecord({ ...reclaimed(image), writeId: `foreign-write-${(writes += 1)}` }, image.key);
  };
  const write: Executor['write'] = async ({ shard }, request, _known, deadline): Promise<WriteAnswer> => {
    await Promise.resolve();
    const isBusy = timeLeftMs(busyUntil.get(shard) ?? 0) > 0;
    const fault = isBusy ? 'throttled on' : (faults.shift() ?? 'none');
    met.add(fault);
    if (fault === 'throttled on') busyUntil.set(shard, deadline);
    if (fault === 'throttled' || fault === 'throttled on') {
      return { kind: 'busy', cause: 'throttled', hotKey: false, error: THROTTLED };
    }
    if (fault === 'denied') return { kind: 'failed', error: new Error('denied') };
    if (fault === 'refused') interfere(shard);
    if (fault === 'reclaimed') reclaim(shard);
    const lands = fault !== 'lost, not landed' && fault !== 'stalled, not landed';
    const isWritten = lands && records[shard]!.write(request);
    if (fault.startsWith('stalled') || fault === 'slow') await sleep(timeLeftMs(deadline));
    if (fault.startsWith('stalled') || fault.startsWith('lost'))
      return { kind: 'no-answer', unsent: false, error: LOST };
    return { kind: isWritten ? 'written' : 'refused', image: records[shard]!.image! };
  };
  const random = new Random(1);
  const executor: Executor = {
    ns: 'x',
    random: () => random.whole(0, 2 ** 32 - 1) / 2 ** 32,
    write,
    writeAll: async () => ({ kind: 'refused' }),
    read: async ({ shard }) => records[shard]!.image,
    readReceipt: async () => null,
    readBuckets: async (refs) => refs.map(images),
  };
  const cache = new BucketCache(() => executor, executor.random, PRESSURE);
  const seen = new Set<string>();
  const backend: Backend = {
    ...memory(),
    consume: (call, request) => {
      const bucket = cache.of(call.namespaceId, KEY.entityId, KEY.resource);
      if (!seen.has(call.namespaceId)) for (const image of images()) bucket.shard(image.key.shard).see(image, NOW_MS);
      seen.add(call.namespaceId);
      return consume(cache, call, request);
    },
    adjust: (call, request) => adjust(cache, call, request),
    extend: (call, request) => extend(cache, call, request),
  };
  const sumOf = (of: (image: ShardImage) => number): number => images().reduce((sum, image) => sum + of(image), 0);
  const accountIn = ({ limits: all }: ShardImage, name: string) => all.find(({ limit }) => limit.name === name)!;
  return {
    backend,
    start: (next) => {
      faults = [...next];
      busyUntil.clear();
    },
    met,
    images,
    takenMilli: (name) => sumOf((image) => Number(accountIn(image, name).consumedMilli)) - (foreign.get(name) ?? 0),
    slotsMilli: (name) =>
      sumOf((image) => {
        const held = [...image.holders.values()].map(({ slots }) => Number(amountOf(slots, name) ?? 0));
        return Number(accountIn(image, name).tokensMilli) + held.reduce((sum, milli) => sum + milli, 0);
      }),
  };
}

/** As by the expiry of all holders. */
function reclaimed(image: ShardImage): ShardImage {
  const holders = [...image.holders.values()];
  const back = (amounts: readonly Amount[], name: string): number => Number(amountOf(amounts, name) ?? 0);
  const sum = (name: string, of: (holder: (typeof holders)[number]) => readonly Amount[]): number =>
    holders.reduce((total, holder) => total + back(of(holder), name), 0);
  const limits = image.limits.map((account) => {
    const { name } = account.limit;
    const rates = sum(name, (holder) => holder.rates ?? []);
    return {
      ...account,
      tokensMilli: Number(account.tokensMilli) + rates + sum(name, (holder) => holder.slots),
      consumedMilli: Number(account.consumedMilli) - rates,
    };
  });
  return { ...image, limits, holders: new Map(), expired: image.expired + holders.length, onSweepList: false };
}
