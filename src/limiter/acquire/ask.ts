import type { Amount } from '../../core/bucket/decide.js';
import type { EpochMs } from '../../core/units.js';
import type { AcquireRequest } from './request.js';

/** A request on its way down: checked, with the one time at which it is decided. */
export interface Ask {
  readonly request: AcquireRequest;
  /** What `consume` names, in millitokens. */
  readonly named: readonly Amount[];
  readonly nowMs: EpochMs;
  /** Whoever wants a lease does not look at the statuses of a grant, so that they need not be made. */
  readonly wants: 'decision' | 'lease';
}
