import type { ChargeReceipt } from '../../backend.js';
import type { EpochMs } from '../../core/units.js';

/** The number of receipts that are kept: beyond it the oldest is dropped, and its charge would count again. */
const MAX_RECEIPTS = 100_000;

interface Kept {
  readonly content: string;
  readonly endMs: EpochMs;
}

/** The receipts of one namespace in this process's memory. */
export class Receipts {
  /** Oldest first: all receipts are kept equally long. */
  readonly #kept = new Map<string, Kept>();
  readonly #most: number;

  constructor(most = MAX_RECEIPTS) {
    this.#most = most;
  }

  get size(): number {
    return this.#kept.size;
  }

  read(receipt: ChargeReceipt, nowMs: EpochMs): string | undefined {
    const kept = this.#kept.get(keyOf(receipt));
    return kept === undefined || kept.endMs <= nowMs ? undefined : kept.content;
  }

  write(receipt: ChargeReceipt, endMs: EpochMs, nowMs: EpochMs): void {
    const key = keyOf(receipt);
    // Deleted first, so that the new receipt is the last one.
    this.#kept.delete(key);
    for (const [oldest, kept] of this.#kept) {
      if (kept.endMs > nowMs && this.#kept.size < this.#most) break;
      this.#kept.delete(oldest);
    }
    this.#kept.set(key, { content: receipt.content, endMs });
  }
}

/** Unambiguous, because neither name may contain "#". */
function keyOf({ entityId, resource, id }: ChargeReceipt): string {
  return `${entityId}#${resource}#${id}`;
}
