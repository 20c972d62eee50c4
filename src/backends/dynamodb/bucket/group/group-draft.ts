import type { LevelRef } from '../../../../backend.js';
import type { AskedAmount, Verdict } from '../../../../core/bucket/decide.js';
import type { EpochMs } from '../../../../core/units.js';
import type { ShardImage } from '../../table/items.js';
import { withTtl } from '../bucket-ttl.js';
import { changesNothing, type HolderChange, LimitSums, type ShardWrite } from '../shard-write.js';

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

/** The holders in one write. DynamoDB accepts 300 operators and 4 KB in a condition. */
export const MAX_HOLDERS = 80;

/** The write of one group while it is planned. */
export class GroupDraft {
  readonly image: ShardImage;
  readonly at: PlanContext;
  readonly sums = new LimitSums();
  readonly #holders = new Map<string, HolderChange>();
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
