import type { LimitStatus } from '../../core/bucket/decide.js';
import type { DenialReason } from '../../core/bucket/conclude.js';
import type { PausedBy } from '../../core/pause.js';
import type { Lease } from '../lease/lease.js';
import type { DecidedBy } from './decision-event.js';

/** The call may proceed. End its lease. */
export interface Granted<L extends string = string> {
  readonly granted: true;
  readonly lease: Lease<L>;
  /** Every limit that was asked, at every level. */
  readonly statuses: readonly LimitStatus[];
  readonly decidedBy: DecidedBy;
}

/** The call may not proceed. */
export interface Denied {
  readonly granted: false;
  /** The longest wait of the violations; null if no wait helps. */
  readonly retryAfterMs: number | null;
  readonly reason: DenialReason;
  readonly statuses: readonly LimitStatus[];
  /** The statuses of the limits that refused. */
  readonly violations: readonly LimitStatus[];
  readonly decidedBy: DecidedBy;
  /** Set if the reason is `paused`: the pause with the latest end. No limit was asked then. */
  readonly paused?: PausedBy;
}

/** The answer of `tryAcquire`. `granted` distinguishes the two. */
export type Decision<L extends string = string> = Granted<L> | Denied;
