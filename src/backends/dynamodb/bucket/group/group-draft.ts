import type { LevelRef } from '../../../../backend.js';
import type { Amount, AskedAmount, Holder, Verdict } from '../../../../core/bucket/decide.js';
import type { EpochMs } from '../../../../core/units.js';
import { accountOf, type ShardImage } from '../../table/items.js';
import { changesNothing, type HolderChange, type LimitChange, type ShardWrite, withTtl } from '../shard-write.js';
import { credit, type LimitWrite, planMove, type Rate } from '../../../../core/bucket/bucket.js';
import { add, type Int, min, sub } from '../../../../core/int.js';
import { hasBalance, isConsumed, refills, sharesAccount } from '../../../../core/limit-kind.js';

/**
 * How far an image can be trusted. `exact`: the store has just returned it. `young`: recent enough to deny rates.
 * `guess`: it only chooses the form of a write, whose condition decides.
 */
export type Trust = 'exact' | 'young' | 'guess';

export interface PlanContext {
  readonly nowMs: EpochMs;
  readonly trust: Trust;
  readonly lifeFactor: number;
  /** A write of this group got no answer: refunds that would count twice if it landed are left out. */
  readonly withoutRefunds: boolean;
  /** What an image says about an ask, if that was judged before. */
  readonly judgement?: Judgement | null;
}

export interface Judgement {
  readonly image: ShardImage;
  readonly asks: readonly AskedAmount[];
  readonly nowMs: EpochMs;
  readonly verdicts: readonly Verdict[];
}

/** The holders in one write. A store accepts conditions up to some size: one takes 300 operators and 4 KB. */
export const MAX_HOLDERS = 80;

/** The write of one group while it is planned. */
export class GroupDraft {
  readonly image: ShardImage;
  readonly at: PlanContext;
  readonly sums = new LimitSums();
  readonly #holders = new Map<string, HolderChange>();
  /** The traces that this write leaves, by lease. */
  readonly endedLeases = new Map<string, Holder>();
  acquires = 0;
  hasTaken = false;
  /** An answer depends on something that the image lacks, and the image is not exact. */
  unsure = false;

  constructor(image: ShardImage, at: PlanContext) {
    this.image = image;
    this.at = at;
  }

  get isExact(): boolean {
    return this.at.trust === 'exact';
  }

  /** False: the write has no place for a change of this holder, or changes it already. The entry waits for the next write. */
  mayChangeHolder(leaseId: string): boolean {
    return this.#holders.size < MAX_HOLDERS && !this.#holders.has(leaseId);
  }

  changeHolder(change: HolderChange): void {
    this.#holders.set(change.leaseId, change);
  }

  holderChangeOf(leaseId: string): HolderChange | undefined {
    return this.#holders.get(leaseId);
  }

  finish(newest: LevelRef | null, adopts: ShardWrite['adopts']): ShardWrite {
    const write: ShardWrite = {
      limits: this.sums.changes(this.image, this.at.nowMs),
      acquires: this.acquires,
      expired: 0,
      holders: [...this.#holders.values()],
      adopts,
      ttlSec: undefined,
      takesAtMs: this.hasTaken ? this.at.nowMs : undefined,
    };
    return changesNothing(write) ? write : withTtl(this.image, write, newest, this.at);
  }
}

/** Leaves a balance as it is. */
export const STAYS: LimitWrite = { write: 'add', deltaMilli: 0, atLeastMilli: null, atMostMilli: null };

interface Sum {
  takeMilli: Int | null;
  /** The largest reserve among the takes. */
  reserveMilli: number;
  debitMilli: Int;
  refundMilli: Int;
  /** Asks that are counted and not taken: shadows that are short. */
  countMilli: Int;
  /** The stored tokens are at most this, so that the shadows are short; null: they are short anyway. */
  atMostMilli: Int | null;
  /** Consumption that is taken back and changes no balance. */
  uncountMilli: Int;
}

/** The sums that a write changes each limit by. */
export class LimitSums {
  readonly #byName = new Map<string, Sum>();

  take(name: string, milli: Int, reserveMilli = 0): void {
    const sum = this.#of(name);
    sum.takeMilli = add(sum.takeMilli ?? 0, milli);
    sum.reserveMilli = Math.max(sum.reserveMilli, reserveMilli);
  }

  /** Counts an ask of a shadow that is short, also after the takes so far. `needMilli`: the ask and its reserve. */
  count(name: string, milli: number, needMilli: number, rate: Rate, creditedMilli: Int): void {
    const sum = this.#of(name);
    sum.countMilli = add(sum.countMilli, milli);
    const missing = add(needMilli, sum.takeMilli ?? 0);
    // More than the capacity is short whatever the balance is.
    if (refills(rate.kind) && missing > rate.capacityMilli) return;
    const atMost = sub(sub(missing, creditedMilli), 1);
    sum.atMostMilli = sum.atMostMilli === null ? atMost : min(sum.atMostMilli, atMost);
  }

  /** Counts an ask of a shadow whatever the balance is. */
  countAside(name: string, milli: number): void {
    const sum = this.#of(name);
    sum.countMilli = add(sum.countMilli, milli);
  }

  /** What the takes so far must leave. */
  reserveOf(name: string): number {
    return this.#byName.get(name)?.reserveMilli ?? 0;
  }

  debit(name: string, milli: Int): void {
    const sum = this.#of(name);
    sum.debitMilli = add(sum.debitMilli, milli);
  }

  /** Skips a limit that was removed, and one that has changed its kind: tokens are not slots. */
  refund(image: ShardImage, kind: 'rate' | 'concurrent', amounts: readonly Amount[]): void {
    for (const { name, milli } of amounts) {
      const found = accountOf(image, name)?.limit.kind;
      if (found === undefined || !sharesAccount(found, kind)) continue;
      const sum = this.#of(name);
      sum.refundMilli = add(sum.refundMilli, milli);
    }
  }

  uncount(name: string, milli: Int): void {
    const sum = this.#of(name);
    sum.uncountMilli = add(sum.uncountMilli, milli);
  }

  changes(image: ShardImage, nowMs: EpochMs): readonly LimitChange[] {
    const changes: LimitChange[] = [];
    for (const { limit, rate, tokensMilli } of image.limits) {
      const sum = this.#byName.get(limit.name);
      if (sum === undefined) continue;
      const credited = credit(rate, image.baseMs, nowMs);
      const write = hasBalance(limit.kind) ? bounded(planMove(rate, tokensMilli, credited, sum), sum) : STAYS;
      changes.push({ name: limit.name, write, consumedMilli: isConsumed(limit.kind) ? consumedIn(sum) : 0 });
    }
    return changes;
  }

  #of(name: string): Sum {
    let sum = this.#byName.get(name);
    if (sum === undefined) this.#byName.set(name, (sum = { ...NOTHING }));
    return sum;
  }
}

const NOTHING: Sum = {
  takeMilli: null,
  reserveMilli: 0,
  debitMilli: 0,
  refundMilli: 0,
  countMilli: 0,
  atMostMilli: null,
  uncountMilli: 0,
};

/** Adds the bound under which the shadows of the group are short. A full bucket is known exactly and needs none. */
function bounded(write: LimitWrite, { atMostMilli }: Sum): LimitWrite {
  if (atMostMilli === null || write.write === 'set') return write;
  return { ...write, atMostMilli: write.atMostMilli === null ? atMostMilli : min(write.atMostMilli, atMostMilli) };
}

function consumedIn({ takeMilli, debitMilli, refundMilli, countMilli, uncountMilli }: Sum): Int {
  return sub(add(add(takeMilli ?? 0, countMilli), debitMilli), add(refundMilli, uncountMilli));
}
