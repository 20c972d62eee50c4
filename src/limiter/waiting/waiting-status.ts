/** Calls of this process that wait for the same limit, or that wait although no limit refused them. */
export interface WaitingStatus {
  readonly entityId: string;
  readonly resource: string;
  /** The name of the limit; null: the calls wait for the end of a pause, or ask again because other writers won. */
  readonly limit: string | null;
  /** The priority class of the calls; null: none. */
  readonly priority: string | null;
  /** How many calls wait. */
  readonly depth: number;
  /** How long the first of them has waited. */
  readonly oldestWaitMs: number;
}
