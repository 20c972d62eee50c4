import type { EpochMs } from '../../../core/units.js';
import type { Trust } from '../bucket/plan-group.js';
import type { ShardImage } from '../table/items.js';

/** What this process remembers of one shard. */
export class ImageMemory {
  #image: ShardImage | null = null;
  #absent = false;
  #seenAtMs: EpochMs = Number.NEGATIVE_INFINITY;

  get image(): ShardImage | null {
    return this.#image;
  }

  /** null: the store has just said that there is no such item. */
  keep(image: ShardImage | null, nowMs: EpochMs): void {
    this.#image = image;
    this.#absent = image === null;
    this.#seenAtMs = nowMs;
  }

  /** The next write asks the store. */
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
