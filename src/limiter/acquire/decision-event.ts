/** Who answered. Anything but `store` and `deny-cache` is a degraded answer, given by policy while the store was out. */
export type DecidedBy = 'store' | 'deny-cache' | 'fallback' | 'open';

/** `exhausted`: retry after the wait. `contended`: too many writers at once, retry soon. `impossible`: more than the capacity. */
export type DenialReason = 'exhausted' | 'contended' | 'impossible';

/** What `onDecision` hears. */
export interface DecisionEvent {
  readonly namespace: string;
  readonly entityId: string;
  readonly resource: string;
  readonly consume: Readonly<Record<string, number>>;
  readonly granted: boolean;
  readonly reason: DenialReason | null;
  readonly retryAfterMs: number | null;
  readonly decidedBy: DecidedBy;
}
