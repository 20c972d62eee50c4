import type { LevelAsk } from '../../backend.js';
import type { Amount } from '../../core/bucket/decide.js';
import type { EpochMs } from '../../core/units.js';
import type { AcquireRequest } from './request.js';

/** A checked request with the time at which it is decided. */
export interface Ask {
  readonly request: AcquireRequest;
  /** The amounts of `consume`, in millitokens. */
  readonly named: readonly Amount[];
  readonly nowMs: EpochMs;
  /** A caller that wants only a lease does not use the statuses of a grant, so they are not built. */
  readonly wants: 'decision' | 'lease';
  /** The parents that are not asked, once the chain is known: a correction of the lease may charge them. Left out: none. */
  unasked?: readonly LevelAsk[];
}
