import { credit, planMove } from '../../../core/bucket/bucket.js';
import type { Amount } from '../../../core/bucket/decide.js';
import { add, type Int, sub } from '../../../core/int.js';
import { isConsumed } from '../../../core/limit.js';
import type { EpochMs } from '../../../core/units.js';
import type { ShardImage } from '../table/items.js';
import { type LimitChange, STAYS } from './shard-write.js';

interface Sum {
  takeMilli: Int | null;
  debitMilli: Int;
  refundMilli: Int;
  /** Consumption that is taken back without a balance to give it to. */
  uncountMilli: Int;
}

/** What a write moves of each limit. */
export class Sums {
  readonly #byName = new Map<string, Sum>();

  take(name: string, milli: Int): void {
    const sum = this.#of(name);
    sum.takeMilli = add(sum.takeMilli ?? 0, milli);
  }

  debit(name: string, milli: Int): void {
    const sum = this.#of(name);
    sum.debitMilli = add(sum.debitMilli, milli);
  }

  /** A limit that is gone drops its part; so does one that has changed its kind since: tokens are no slots. */
  refund(image: ShardImage, kind: 'rate' | 'concurrent', amounts: readonly Amount[]): void {
    for (const { name, milli } of amounts) {
      const found = image.limits.find(({ limit }) => limit.name === name)?.limit.kind;
      if (found === undefined || isConsumed(found) !== isConsumed(kind)) continue;
      const sum = this.#of(name);
      sum.refundMilli = add(sum.refundMilli, milli);
    }
  }

  uncount(name: string, milli: Int): void {
    const sum = this.#of(name);
    sum.uncountMilli = add(sum.uncountMilli, milli);
  }

  moves(image: ShardImage, nowMs: EpochMs): readonly LimitChange[] {
    const moves: LimitChange[] = [];
    for (const { limit, rate, tokensMilli } of image.limits) {
      const sum = this.#byName.get(limit.name);
      if (sum === undefined) continue;
      const write =
        limit.kind === 'unlimited' ? STAYS : planMove(rate, tokensMilli, credit(rate, image.baseMs, nowMs), sum);
      moves.push({ name: limit.name, write, consumedMilli: isConsumed(limit.kind) ? consumedIn(sum) : 0 });
    }
    return moves;
  }

  #of(name: string): Sum {
    let sum = this.#byName.get(name);
    if (sum === undefined)
      this.#byName.set(name, (sum = { takeMilli: null, debitMilli: 0, refundMilli: 0, uncountMilli: 0 }));
    return sum;
  }
}

function consumedIn({ takeMilli, debitMilli, refundMilli, uncountMilli }: Sum): Int {
  return sub(add(takeMilli ?? 0, debitMilli), add(refundMilli, uncountMilli));
}
