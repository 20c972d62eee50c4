import type { LimitStatus } from '../../core/bucket/decide.js';
import type { Lease } from '../lease/lease.js';

/** Who answered. Anything but `store` and `deny-cache` is a degraded answer, given by policy while the store was out. */
export type DecidedBy = 'store' | 'deny-cache' | 'fallback' | 'open';

export interface Granted<L extends string = string> {
  readonly granted: true;
  readonly lease: Lease<L>;
  /** Every limit that was asked, of every level. */
  readonly statuses: readonly LimitStatus[];
  readonly decidedBy: DecidedBy;
}

export interface Denied {
  readonly granted: false;
  /** The longest wait of the violations; null if no wait helps. */
  readonly retryAfterMs: number | null;
  /** `exhausted`: retry after the wait. `contended`: too many writers at once, retry soon. `impossible`: more than the capacity. */
  readonly reason: 'exhausted' | 'contended' | 'impossible';
  readonly statuses: readonly LimitStatus[];
  /** The statuses that refused. */
  readonly violations: readonly LimitStatus[];
  readonly decidedBy: DecidedBy;
}

export type Decision<L extends string = string> = Granted<L> | Denied;

/** What `onDecision` hears. */
export interface DecisionEvent {
  readonly namespace: string;
  readonly entityId: string;
  readonly resource: string;
  readonly consume: Readonly<Record<string, number>>;
  readonly granted: boolean;
  readonly reason: Denied['reason'] | null;
  readonly retryAfterMs: number | null;
  readonly decidedBy: DecidedBy;
}
