import type { Awaitable } from '../../src/backend.js';
import { applyWrite, type LimitWrite, type Rate, writeHolds } from '../../src/core/bucket/bucket.js';
import type { EpochMs, Millitokens } from '../../src/core/units.js';

/** A bucket as a client saw it. Limits are identified by their index. */
export interface Image {
  readonly baseMs: EpochMs;
  readonly limits: readonly { readonly rate: Rate; readonly tokensMilli: Millitokens }[];
}

/** One conditional write to one bucket. It is applied completely or not at all. */
export interface BucketWrite {
  /** The required base of the bucket; null: any. */
  readonly ifBaseMs: EpochMs | null;
  readonly setBaseMs: EpochMs | null;
  readonly limits: readonly {
    readonly limit: number;
    readonly write: LimitWrite;
    readonly setRate: Rate | null;
  }[];
}

/** A store that applies conditional writes. It answers with the new state, or with the state that failed the condition. */
export interface ConditionalStore {
  write(write: BucketWrite): Awaitable<{ readonly applied: boolean; readonly image: Image }>;
  read(): Awaitable<Image>;
}

export type CreateStore = (initial: Image) => Awaitable<ConditionalStore>;

/** The state of a new bucket: full. */
export function fullImage(rates: readonly Rate[], createdAtMs: EpochMs): Image {
  return { baseMs: createdAtMs, limits: rates.map((rate) => ({ rate, tokensMilli: rate.capacityMilli })) };
}

export function memoryStore(initial: Image): ConditionalStore {
  let image = initial;
  return {
    write(write) {
      const holds =
        (write.ifBaseMs === null || write.ifBaseMs === image.baseMs) &&
        write.limits.every(({ limit, write: part }) => writeHolds(part, at(image.limits, limit).tokensMilli));
      if (!holds) return { applied: false, image };
      const limits = [...image.limits];
      for (const { limit, write: part, setRate } of write.limits) {
        const { rate, tokensMilli } = at(limits, limit);
        limits[limit] = { rate: setRate ?? rate, tokensMilli: applyWrite(part, tokensMilli) };
      }
      image = { baseMs: write.setBaseMs ?? image.baseMs, limits };
      return { applied: true, image };
    },
    read: () => image,
  };
}

export function at<T>(list: readonly T[], index: number): T {
  const item = list[index];
  if (item === undefined) throw new RangeError(`There is no limit ${index}`);
  return item;
}
