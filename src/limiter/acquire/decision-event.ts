/** What decided. `fallback` and `open` are decisions of the outage policy while the store did not answer. */
export type DecidedBy = 'store' | 'deny-cache' | 'fallback' | 'open';

/** `exhausted`: retry after the wait. `contended`: too many writers at once, retry soon. `impossible`: more than the capacity. */
export type DenialReason = 'exhausted' | 'contended' | 'impossible';

/** The argument of `onDecision`. */
export interface DecisionEvent {
  readonly namespace: string;
  readonly entityId: string;
  readonly resource: string;
  readonly consume: Readonly<Record<string, number>>;
  /** The priority class of the request. Left out: none. */
  readonly priority?: string;
  readonly granted: boolean;
  /** The ask was granted although a shadow would have refused it. */
  readonly exceeded?: true;
  readonly reason: DenialReason | null;
  readonly retryAfterMs: number | null;
  readonly decidedBy: DecidedBy;
}
