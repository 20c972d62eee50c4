import type { EpochMs } from '../../../core/units.js';
import type { Trust } from '../bucket/plan-group.js';
import type { ShardImage } from '../table/items.js';

/** The cached image of one shard. */
export class ImageMemory {
  #image: ShardImage | null = null;
  #absent = false;
  #seenAtMs: EpochMs = Number.NEGATIVE_INFINITY;

  get image(): ShardImage | null {
    return this.#image;
  }

  /** null: the store has just answered that the item does not exist. */
  keep(image: ShardImage | null, nowMs: EpochMs): void {
    this.#image = image;
    this.#absent = image === null;
    this.#seenAtMs = nowMs;
  }

  /** The next write must read the store first. */
  forget(): void {
    this.#image = null;
    this.#absent = false;
  }

  isYoung(nowMs: EpochMs, denyCacheMs: number): boolean {
    const ageMs = nowMs - this.#seenAtMs;
    return ageMs >= 0 && ageMs < denyCacheMs;
  }

  trustAt(nowMs: EpochMs, denyCacheMs: number): Trust {
    return this.isYoung(nowMs, denyCacheMs) ? 'young' : 'guess';
  }

  isKnownAbsent(nowMs: EpochMs, denyCacheMs: number): boolean {
    return this.#absent && this.isYoung(nowMs, denyCacheMs);
  }
}
