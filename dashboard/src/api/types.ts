/** The answers of the HTTP API that the dashboard reads, as `/openapi.json` describes them. */

export interface LimitView {
  readonly name: string;
  readonly text: string;
  readonly kind: 'rate' | 'concurrent' | 'unlimited';
  /** null: unlimited. */
  readonly capacity: number | null;
  readonly refillAmount: number;
  readonly refillPeriodMs: number;
  readonly reserve?: Readonly<Record<string, number>>;
  readonly shadow?: true;
}

export interface StatusView {
  readonly entityId: string;
  readonly resource: string;
  readonly limit: LimitView;
  readonly available: number | null;
  readonly requested: number;
  readonly reserved?: number;
  readonly shadow?: true;
  readonly near?: true;
  readonly exceeded: boolean;
  readonly retryAfterMs: number | null;
  /** The pause that refuses every ask of the entity on the resource, at whichever level it is. */
  readonly paused?: PausedBy;
}

/** A stored pause, which may have ended. `until` null: until it is resumed. */
export interface StoredPause {
  readonly until: string | null;
  readonly reason: string;
}

export interface PausedBy extends StoredPause {
  readonly entityId: string;
  readonly resource: string | null;
}

export interface BucketView {
  readonly entityId: string;
  readonly resource: string;
  readonly limits: readonly {
    readonly limit: LimitView;
    readonly available: number | null;
    readonly consumed: number;
  }[];
  readonly holders: number;
  readonly acquires: number;
  readonly expired: number;
  readonly paused?: StoredPause;
}

export interface EntityView {
  readonly id: string;
  readonly name: string | null;
  readonly parentId: string | null;
  readonly cascade: boolean;
  readonly bypass?: true;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly version: number;
  readonly createdAt: string;
  readonly paused?: StoredPause;
}

export interface ConfigView {
  readonly limits: readonly LimitView[];
  readonly onUnavailable: string | null;
}

/** A level of configuration: both names, one of them, or none (the system). */
export interface Level {
  readonly entityId?: string;
  readonly resource?: string;
}

export interface LevelView extends ConfigView {
  readonly level: Level;
}

export interface EffectiveView {
  readonly limits: readonly LimitView[];
  readonly configSource: string | null;
  readonly onUnavailable: string;
}

export interface LeaseView {
  readonly id: string;
  readonly entityId: string;
  readonly resource: string;
  readonly amounts: Readonly<Record<string, number>>;
  readonly caller: string | null;
  readonly acquiredAt: string | null;
  readonly expiresAt: string;
  readonly portable: boolean;
}

export interface UsageView {
  readonly entityId: string;
  readonly resource: string;
  readonly window: 'hourly' | 'daily' | 'monthly';
  readonly windowStart: string;
  readonly windowEnd: string;
  readonly tokens: Readonly<Record<string, number>>;
  readonly acquires: number;
  readonly expired: number;
}

export interface AuditView {
  readonly id: string;
  readonly at: string;
  readonly principal: string | null;
  readonly action: string;
  readonly subject: string;
  readonly before: unknown;
  readonly after: unknown;
}

export interface WaitingView {
  readonly entityId: string;
  readonly resource: string;
  readonly limit: string;
  readonly priority: string | null;
  readonly depth: number;
  readonly oldestWaitMs: number;
}

export interface PlanView {
  readonly changes: readonly {
    readonly action: 'create' | 'update' | 'delete';
    readonly target: Readonly<Record<string, unknown>>;
    readonly before: Readonly<Record<string, unknown>> | null;
    readonly after: Readonly<Record<string, unknown>> | null;
  }[];
  readonly drift: readonly { readonly target: Readonly<Record<string, unknown>> }[];
  readonly unchanged: number;
}

export interface SessionView {
  readonly token: string | null;
  readonly role: 'app' | 'admin';
  readonly namespace: string;
  readonly everyNamespace: boolean;
  readonly entityPrefix: string | null;
}

/** One result of `POST /v1/acquire/batch`. */
export type AskResult =
  | {
      readonly granted: true;
      readonly lease: { readonly id: string; readonly token: string | null };
      readonly statuses: readonly StatusView[];
      readonly decidedBy?: string;
    }
  | {
      readonly granted: false;
      readonly detail: string;
      readonly reason?: string;
      readonly retryAfterMs?: number | null;
      readonly violations?: readonly StatusView[];
      readonly decidedBy?: string;
      readonly paused?: PausedBy;
    };

export interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | null;
}
