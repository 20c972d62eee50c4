import type { DenialReason } from '../../core/bucket/conclude.js';

/** What decided. `fallback` and `open` are decisions of the outage policy while the store did not answer. */
export type DecidedBy = 'store' | 'deny-cache' | 'fallback' | 'open';

/** The argument of `onDecision`. */
export interface DecisionEvent {
  readonly namespace: string;
  readonly entityId: string;
  readonly resource: string;
  /** The amounts of the request. Of a limit that `atMost` names: what a grant has taken. */
  readonly consume: Readonly<Record<string, number>>;
  /** The priority class of the request. Left out: none. */
  readonly priority?: string;
  readonly granted: boolean;
  /** The ask was granted although a shadow would have refused it. */
  readonly exceeded?: true;
  /** A limit that was asked has a `warnAt`, and at least that share of it is used after the decision. */
  readonly near?: true;
  readonly reason: DenialReason | null;
  readonly retryAfterMs: number | null;
  readonly decidedBy: DecidedBy;
}
