/**
 * What `--json` prints, one type per command: a promise to programs, repeated as a table in docs/guide/cli.md. Limits are
 * text as `Limit.parse` reads it, instants are ISO 8601 in UTC, durations end in `Ms`. Every field is always there.
 */
type LimitText = string;
export type Instant = string;
type Counts = Readonly<Record<string, number>>;

export interface ListShape<T> {
  readonly items: readonly T[];
  /** For `--after`; null: this was the last page. */
  readonly next: string | null;
}

/** `version` */
export interface VersionShape {
  readonly version: string;
  readonly node: string;
}

/** `check` */
export interface CheckShape {
  readonly ok: true;
  readonly store: string;
  readonly latencyMs: number;
  readonly namespace: string;
  readonly namespaceId: string;
}

/** `acquire` */
export interface AcquireShape {
  readonly granted: boolean;
  /** true: nothing was taken, this is what would be. */
  readonly dryRun: boolean;
  readonly entityId: string;
  readonly resource: string;
  readonly reason: 'exhausted' | 'contended' | 'impossible' | null;
  /** null: granted, or waiting does not help. */
  readonly retryAfterMs: number | null;
  readonly decidedBy: 'store' | 'deny-cache' | 'fallback' | 'open';
  /** null: denied, or a dry run. */
  readonly lease: {
    readonly id: string;
    readonly state: 'committed' | 'held';
    readonly expiresAt: Instant | null;
  } | null;
  /** The entity first, then the parents that it spends from. */
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
  /** null: this limit was not asked. */
  readonly asked: number | null;
  /** null: not known, since it was not asked. */
  readonly before: number | null;
  /** What is left when the command has ended: slots of a committed lease are back. */
  readonly after: number | null;
  readonly exceeded: boolean;
  /** 0: it fits. null: it never will. */
  readonly retryAfterMs: number | null;
}

/** `entity create`, items of `entity list` and `entity children` */
export interface EntityShape {
  readonly id: string;
  readonly name: string | null;
  readonly parentId: string | null;
  readonly cascade: boolean;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly createdAt: Instant;
  readonly version: number;
}

/** `entity show`, `entity set` */
export interface EntityViewShape {
  readonly id: string;
  /** null: there is no record, only limits. */
  readonly entity: EntityShape | null;
  /** Its own limits for every resource that is not listed. */
  readonly defaultLimits: readonly LimitText[];
  readonly resources: readonly ResourceShape[];
}

/** `resource show`, `resource set`, items of `resource list` */
export interface ResourceShape {
  readonly resource: string;
  readonly limits: readonly LimitText[];
}

/** `system show`, `system set` */
export interface SystemShape {
  readonly limits: readonly LimitText[];
  readonly onUnavailable: 'block' | 'allow' | 'local' | null;
}

/** `entity delete`, `resource delete`, `system delete` */
export interface DeletedShape {
  /** false: there was nothing to delete. */
  readonly deleted: boolean;
}

/** `config show` */
export interface ConfigShape {
  readonly entityId: string;
  readonly resource: string;
  /** What each level has, the strongest first. */
  readonly levels: readonly {
    readonly source: 'entity' | 'entity_default' | 'resource' | 'system';
    readonly limits: readonly LimitText[];
  }[];
  /** With `--effective`: what an acquire is judged by, the entity first, then the parents that it spends from. */
  readonly effective: readonly EffectiveShape[] | null;
  readonly onUnavailable: 'block' | 'allow' | 'local';
}

/** Items of `config list` */
export interface ConfigEntryShape {
  readonly source: 'entity' | 'entity_default' | 'resource' | 'system';
  readonly entityId: string | null;
  readonly resource: string | null;
  readonly limits: readonly LimitText[];
  /** Of the system only. */
  readonly onUnavailable: 'block' | 'allow' | 'local' | null;
}

export interface EffectiveShape {
  readonly entityId: string;
  readonly configSource: 'entity' | 'entity_default' | 'resource' | 'system' | null;
  readonly limits: readonly LimitText[];
}

/** `namespace show|delete|recover`, items of `namespace list` and `namespace orphans` */
export interface NamespaceShape {
  readonly id: string;
  readonly name: string;
  readonly status: 'active' | 'deleted' | 'purging';
  readonly createdAt: Instant;
}

/** `namespace create` */
export interface NamespaceCreatedShape extends NamespaceShape {
  /** false: it was there already. */
  readonly created: boolean;
}

/** `namespace purge` */
export interface PurgedShape {
  /** How many records there were. */
  readonly removed: number;
}

/** Items of `usage list` */
export interface UsageShape {
  readonly entityId: string;
  readonly resource: string;
  readonly window: 'hourly' | 'daily' | 'monthly';
  readonly windowStart: Instant;
  readonly windowEnd: Instant;
  readonly tokens: Counts;
  readonly acquires: number;
  readonly expired: number;
}

/** `usage summary` */
export interface UsageSummaryShape {
  /** null: all entities. */
  readonly entityId: string | null;
  readonly resource: string;
  readonly window: 'hourly' | 'daily' | 'monthly';
  readonly from: Instant | null;
  readonly to: Instant | null;
  /** Windows that have any usage. */
  readonly count: number;
  readonly total: Counts;
  readonly average: Counts;
  readonly acquires: number;
  readonly expired: number;
}

/** `usage plot` */
export interface UsagePlotShape {
  readonly entityId: string | null;
  readonly resource: string;
  readonly window: 'hourly' | 'daily' | 'monthly';
  /** One per limit, then `acquires`; every window of the range has a point, also those without usage. */
  readonly series: readonly {
    readonly name: string;
    readonly points: readonly { readonly windowStart: Instant; readonly value: number }[];
  }[];
}

/** `usage rebuild` */
export interface UsageRebuildShape {
  readonly entityId: string;
  readonly resource: string;
  /** What was missing, and stands in the hour, day and month of now. */
  readonly added: Counts;
  readonly acquires: number;
  readonly expired: number;
}

/** `worker`, when it has stopped */
export interface WorkerShape {
  readonly records: number;
  /** Records that could not be understood. */
  readonly poison: number;
  readonly archived: number;
  readonly splits: number;
  /** Shards of the stream of which something was gone before it was read. */
  readonly trimmed: readonly string[];
}

/** Items of `audit list` */
export interface AuditShape {
  readonly id: string;
  readonly at: Instant;
  readonly principal: string | null;
  readonly action: string;
  readonly subject: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** Items of `leases list` */
export interface LeaseShape {
  readonly id: string;
  readonly amounts: Counts;
  readonly caller: string | null;
  readonly acquiredAt: Instant | null;
  readonly expiresAt: Instant;
  /** true: its time is over, and nobody has taken it back yet. */
  readonly expired: boolean;
}

/** Items of `bucket list` */
export interface BucketShape {
  readonly entityId: string;
  readonly resource: string;
  readonly limits: readonly { readonly limit: LimitText; readonly available: number; readonly consumed: number }[];
  readonly holders: number;
  readonly acquires: number;
  readonly expired: number;
}

/** `bucket show` */
export interface BucketViewShape {
  /** null: nothing was ever taken, or everything is back for long: it is full. */
  readonly bucket: BucketShape | null;
}

/** `bucket reset` */
export interface ResetShape {
  /** false: there is no such bucket, so that it is full anyway. */
  readonly reset: boolean;
}

/** `capacity` */
export interface CapacityShape {
  readonly resource: string;
  readonly limits: readonly {
    readonly name: string;
    readonly capacity: number;
    readonly available: number;
    readonly entities: number;
  }[];
}

/** `limits plan`, `limits diff`; `limits apply`: what it has done */
export interface LimitsPlanShape {
  /** In the order in which they are made. */
  readonly changes: readonly {
    readonly action: 'create' | 'update' | 'delete';
    readonly target: LimitsTargetShape;
    /** null: there is nothing yet. Fields that nobody has set are left out, here and below. */
    readonly before: LimitsFieldsShape | null;
    /** null: nothing will be left. */
    readonly after: LimitsFieldsShape | null;
  }[];
  /** What was changed by hand since the last apply, and is not what the file wants now. */
  readonly drift: readonly {
    readonly target: LimitsTargetShape;
    /** The fields that differ, as they were applied. */
    readonly applied: LimitsFieldsShape;
    /** The same fields as they are; null: the whole object was removed. */
    readonly live: LimitsFieldsShape | null;
  }[];
  /** How many objects of the file are as it wants them. */
  readonly unchanged: number;
}

export type LimitsTargetShape =
  | { readonly kind: 'system' }
  | { readonly kind: 'resource'; readonly resource: string }
  | { readonly kind: 'record'; readonly entityId: string }
  | { readonly kind: 'entity_default'; readonly entityId: string }
  | { readonly kind: 'entity'; readonly entityId: string; readonly resource: string };

/** Of a record `name`, `parent`, `cascade`, `metadata`; else `limits`, and of the system `onUnavailable`. */
export type LimitsFieldsShape = Readonly<Record<string, unknown>>;

/** `limits export`: a limits file, as JSON */
export interface LimitsExportShape {
  readonly namespace: string;
  readonly system?: Readonly<Record<string, unknown>>;
  readonly resources?: Readonly<Record<string, unknown>> | null;
  readonly entities?: Readonly<Record<string, unknown>> | null;
}

/** `reconcile`; with `--watch` one for each sweep, each in a line */
export interface ReconcileShape {
  readonly namespaces: number;
  /** Buckets that were looked at. */
  readonly visited: number;
  /** Leases that had expired. */
  readonly reclaimed: number;
  /** Limits whose free slots were wrong. */
  readonly healed: number;
  /** Pairs of shards that became one. */
  readonly merged: number;
  /** Buckets that need not be looked at again until somebody holds something. */
  readonly unmarked: number;
  /** Buckets that are too much in use to be put right now. */
  readonly busy: number;
  /** Buckets that could not be put right; `failures` has the first 20. */
  readonly failed: number;
  readonly failures: readonly { readonly namespace: string; readonly bucket: string; readonly reason: string }[];
  /** false: it was interrupted. */
  readonly complete: boolean;
  readonly durationMs: number;
}

/** `migrate` */
export interface MigrateShape {
  /** The number of the table's layout before and after; 0 is any that was published before there were numbers. */
  readonly from: number;
  readonly to: number;
  readonly dryRun: boolean;
  /** Those that had something to do. */
  readonly migrations: readonly {
    readonly id: string;
    readonly title: string;
    /** Old records; new ones that were written; old ones that are gone. */
    readonly found: number;
    readonly written: number;
    readonly removed: number;
    /** Buckets that were in use here already, and lose what the old ones lacked. */
    readonly strict: number;
    /** Old records that have no counterpart and stay; `problems` has the first 20. */
    readonly left: number;
    readonly problems: readonly { readonly record: string; readonly reason: string }[];
  }[];
  /** Indexes that are not as this version makes them. */
  readonly indexes: readonly {
    readonly index: string;
    readonly state: 'costly' | 'missing';
    readonly advice: string;
  }[];
  /** Settings of old records that this version does not have, and what becomes of the limits that have them. */
  readonly settings: readonly {
    readonly setting: string;
    readonly records: number;
    readonly treatment: 'converted' | 'dropped' | 'refused';
    readonly effect: string;
  }[];
}

/** `template`: that of CloudFormation */
export interface TemplateShape {
  readonly AWSTemplateFormatVersion: '2010-09-09';
  readonly Description: string;
  readonly Metadata: object;
  readonly Parameters: object;
  readonly Conditions: object;
  readonly Resources: object;
  readonly Outputs: object;
}

/** `completion` */
export interface CompletionShape {
  readonly shell: 'bash' | 'zsh' | 'fish';
  readonly script: string;
}

/** `tour` */
export interface TourShape {
  readonly steps: readonly {
    readonly title: string;
    readonly lines: readonly string[];
  }[];
}
