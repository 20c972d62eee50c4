import type { Instant, LimitText, PausedByShape } from '../../run/common-shapes.js';

/** `--json` of `acquire` */
export interface AcquireShape {
  readonly granted: boolean;
  /** true: nothing was taken; the fields show what would happen. */
  readonly dryRun: boolean;
  readonly entityId: string;
  readonly resource: string;
  readonly reason: 'exhausted' | 'contended' | 'impossible' | 'paused' | null;
  /** null: granted, or waiting does not help. */
  readonly retryAfterMs: number | null;
  readonly decidedBy: 'store' | 'deny-cache' | 'fallback' | 'open';
  /** null: not paused. */
  readonly paused: PausedByShape | null;
  /** null: denied, or a dry run. */
  readonly lease: {
    readonly id: string;
    readonly state: 'committed' | 'held';
    readonly expiresAt: Instant | null;
  } | null;
  /** The entity first, then the parents that its spending cascades to. */
  readonly levels: readonly AcquireLevelShape[];
}

export interface AcquireLevelShape {
  readonly entityId: string;
  /** `call`: the limits were given with `-l`. null: this level has none. */
  readonly configSource: 'call' | 'entity' | 'entity_default' | 'resource' | 'system' | null;
  readonly limits: readonly AcquireLimitShape[];
}

export interface AcquireLimitShape {
  readonly name: string;
  readonly limit: LimitText;
  /** null: the request does not name this limit. */
  readonly asked: number | null;
  /** null: unknown, because the request does not name this limit, or because it is unlimited. */
  readonly before: number | null;
  /** The balance when the command has ended: the slots of a committed lease are given back. */
  readonly after: number | null;
  /** What had to stay for higher priorities. Left out: nothing. */
  readonly reserved?: number;
  /** The limit is a shadow: it refuses nothing, and is not taken where it is exceeded. Left out: it is none. */
  readonly shadow?: true;
  /** At least the share `warnAt` of the limit was used after the decision. Left out: it was less. */
  readonly near?: true;
  readonly exceeded: boolean;
  /** 0: the amount fits. null: it never fits. */
  readonly retryAfterMs: number | null;
}
