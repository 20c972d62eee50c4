import type { TwoKeyMap } from '../../core/two-key-map.js';
import type { EpochMs } from '../../core/units.js';
import type { Bucket } from './bucket.js';
import type { OwnedBucket } from './storage.js';

/** How many buckets each step checks. */
const CHECKED_PER_STEP = 2;

/** Deletes idle buckets, a few in each step from a cursor, so that no call pays for many and no timer is needed. */
export class IdleSweep {
  readonly #buckets: TwoKeyMap<Bucket>;
  readonly #isForgettable: (owned: OwnedBucket, nowMs: EpochMs) => boolean;
  #cursor: ReturnType<TwoKeyMap<Bucket>['entries']>;

  constructor(buckets: TwoKeyMap<Bucket>, isForgettable: (owned: OwnedBucket, nowMs: EpochMs) => boolean) {
    this.#buckets = buckets;
    this.#isForgettable = isForgettable;
    this.#cursor = buckets.entries();
  }

  step(nowMs: EpochMs): void {
    for (let checked = 0; checked < CHECKED_PER_STEP; checked++) {
      const next = this.#cursor.next();
      if (next.done === true) {
        this.#cursor = this.#buckets.entries();
        return;
      }
      const [entityId, resource, bucket] = next.value;
      if (!this.#isForgettable({ entityId, resource, bucket }, nowMs)) continue;
      this.#buckets.delete(entityId, resource);
      bucket.home = null;
    }
  }
}
