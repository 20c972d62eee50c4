import type { PausedBy } from '../../core/pause.js';
import type { DecisionEvent } from '../acquire/decision-event.js';

/** The argument of `onEvent`. New types may be added: a listener must ignore those that it does not know. */
export type LimiterEvent =
  | DecisionMade
  | LeaseEnded
  | EntityPaused
  | EntityResumed
  | OutageBegan
  | OutageEnded
  | ConfigChanged
  | ShardsChanged;

/** A decision, with what `onDecision` gets. */
export interface DecisionMade extends DecisionEvent {
  readonly type: 'decision';
  /** The limits that refused; empty if granted. */
  readonly violations: readonly LimitViolation[];
  /** The pause that denied the ask; null: no pause did. */
  readonly paused: PausedBy | null;
  /** From the call to the decision, by the limiter's clock, including a wait for tokens. */
  readonly durationMs: number;
}

/** A limit that refused, and its level. */
export interface LimitViolation {
  /** The entity of the level: the entity of the request, or one of its parents. */
  readonly entityId: string;
  readonly limit: string;
  readonly requested: number;
  readonly available: number;
  /** null: waiting does not help. */
  readonly retryAfterMs: number | null;
}

/** A lease was committed or rolled back, or this process has noticed that it is lost. */
export interface LeaseEnded {
  readonly type: 'lease-end';
  readonly namespace: string;
  readonly entityId: string;
  readonly resource: string;
  readonly leaseId: string;
  /** `expired`: its holder no longer exists. A commit or rollback may follow, with an event of its own. */
  readonly how: 'committed' | 'rolled-back' | 'expired';
  /** What the lease has taken from its own entity; for a rollback what it gave back. */
  readonly amounts: Readonly<Record<string, number>>;
}

/** This process has paused an entity, or its bucket of one resource. It has the pause that applies: a longer one may have been stored. */
export interface EntityPaused extends PausedBy {
  readonly type: 'pause';
  readonly namespace: string;
}

/** This process has ended a pause. */
export interface EntityResumed {
  readonly type: 'resume';
  readonly namespace: string;
  readonly entityId: string;
  /** null: the pause of the entity on every resource. */
  readonly resource: string | null;
}

/** The breaker opened: the store failed five times in a row, and the outage policy decides. */
export interface OutageBegan {
  readonly type: 'outage-begin';
  /** The last failure. */
  readonly error: unknown;
}

/** The store has answered again. */
export interface OutageEnded {
  readonly type: 'outage-end';
}

/** A level of configuration was changed by this process, or other limits were read than before. */
export interface ConfigChanged {
  readonly type: 'config-change';
  readonly namespace: string;
  /** `read`: the change of another process, seen when this process read the limits of an entity and a resource again. */
  readonly by: 'this-process' | 'read';
  /** null: a resource, or the system. */
  readonly entityId: string | null;
  /** null: the default of an entity, or the system. */
  readonly resource: string | null;
}

/** This process has split a busy shard of a bucket, or merged two cold ones. Only on DynamoDB. */
export interface ShardsChanged {
  readonly type: 'split' | 'merge';
  readonly namespace: string;
  readonly entityId: string;
  readonly resource: string;
}
