import type { PausedBy } from '../../core/pause.js';
import type { DecisionEvent } from '../acquire/decision-event.js';

/** The argument of `onEvent`. New types may be added: a listener must ignore those that it does not know. */
export type LimiterEvent =
  | DecisionMade
  | LeaseEnded
  | SlotsHeld
  | EntityPaused
  | EntityResumed
  | OutageBegan
  | OutageEnded
  | ConfigChanged
  | ShardsChanged
  | ProviderThrottled;

/** A decision, with what `onDecision` gets. */
export interface DecisionMade extends DecisionEvent {
  readonly type: 'decision';
  /** Every limit that was asked, at every level. Empty if no limit was: a pause denied, or the policy `allow` decided. */
  readonly limits: readonly LimitAsked[];
  /** What the grant took from rates and unlimited limits of its own entity. Empty if denied. */
  readonly tokens: Readonly<Record<string, number>>;
  /** The limits that refused; empty if granted. */
  readonly violations: readonly LimitViolation[];
  /** The pause that denied the ask; null: no pause did. */
  readonly paused: PausedBy | null;
  /** From the call to the decision, by the limiter's clock, including a wait for tokens. */
  readonly durationMs: number;
  /** The part of the duration after the first refusal. Left out: the request has no `wait`. */
  readonly waitedMs?: number;
}

/** A limit that was asked, and its level. */
export interface LimitAsked {
  /** The entity of the level: the entity of the request, or one of its parents. */
  readonly entityId: string;
  readonly limit: string;
  readonly requested: number;
  /** Whether the ask did not fit. A shadow may be exceeded by an ask that is granted. */
  readonly exceeded: boolean;
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

/** A lease was committed or rolled back, this process has noticed that it is lost, or has ended it by its id. */
export interface LeaseEnded {
  readonly type: 'lease-end';
  readonly namespace: string;
  readonly entityId: string;
  readonly resource: string;
  readonly leaseId: string;
  /**
   * `expired`: its holder no longer exists, also after `leases.release(id)`. A commit or rollback may follow, with an
   * event of its own.
   */
  readonly how: 'committed' | 'rolled-back' | 'expired';
  /**
   * What the lease has taken from its own entity; for a rollback what it gave back. After a release by id, what its
   * holder showed.
   */
  readonly amounts: Readonly<Record<string, number>>;
  /** The amounts of rates and unlimited limits: `amounts` without slots. */
  readonly tokens: Readonly<Record<string, number>>;
}

/** A lease has taken slots of its own entity, keeps them for longer, or no longer has them. */
export interface SlotsHeld {
  readonly type: 'slots';
  readonly namespace: string;
  readonly entityId: string;
  readonly resource: string;
  readonly leaseId: string;
  /** What the lease holds from now on. Empty: it has given its slots back, or lost them. */
  readonly slots: Readonly<Record<string, number>>;
  /** When the lease loses them unless it is extended; null without slots. */
  readonly expiresAt: Date | null;
}

/**
 * This process has paused an entity, or its bucket of one resource. It has the pause that applies: a longer one may
 * have been stored.
 */
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

/** An integration was refused by the provider that the limits protect, such as by the 429 of an LLM vendor. */
export interface ProviderThrottled {
  readonly type: 'provider-throttle';
  readonly namespace: string;
  readonly entityId: string;
  readonly resource: string;
  /** What the provider counts: such as `requests` or `tokens`; null: not stated. */
  readonly dimension: string | null;
  /** The wait that the provider stated; null: none. */
  readonly retryAfterMs: number | null;
}
