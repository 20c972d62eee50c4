/**
 * What `--json` prints, one type per command: a promise to programs, repeated as a table in docs/guide/cli.md. Limits are
 * text as `Limit.parse` reads it, instants are ISO 8601 in UTC, durations end in `Ms`. Every field is always there.
 */
type LimitText = string;
export type Instant = string;
type Left = number | null;
type Counts = Readonly<Record<string, number>>;

export interface ListShape<T> {
  readonly items: readonly T[];
  /** The value for `--after`; null: this is the last page. */
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
  /** true: nothing was taken; the fields show what would happen. */
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
  readonly exceeded: boolean;
  /** 0: the amount fits. null: it never fits. */
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
  /** Its own limits for every resource without limits of its own. */
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
  /** The limits of each level, the strongest first. */
  readonly levels: readonly {
    readonly source: 'entity' | 'entity_default' | 'resource' | 'system';
    readonly limits: readonly LimitText[];
  }[];
  /** With `--effective`: the limits that an acquire uses, of the entity first, then of its parents. */
  readonly effective: readonly EffectiveShape[] | null;
  readonly onUnavailable: 'block' | 'allow' | 'local';
}

/** Items of `config list` */
export interface ConfigEntryShape {
  readonly source: 'entity' | 'entity_default' | 'resource' | 'system';
  readonly entityId: string | null;
  readonly resource: string | null;
  readonly limits: readonly LimitText[];
  /** null on all levels but the system. */
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
  /** false: it existed already. */
  readonly created: boolean;
}

/** `namespace purge` */
export interface PurgedShape {
  /** The number of removed records. */
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
  /** One per limit, then `acquires`; every window of the range has a point, even without usage. */
  readonly series: readonly {
    readonly name: string;
    readonly points: readonly { readonly windowStart: Instant; readonly value: number }[];
  }[];
}

/** `usage rebuild` */
export interface UsageRebuildShape {
  readonly entityId: string;
  readonly resource: string;
  /** What was missing, and was added to the current hour, day and month. */
  readonly added: Counts;
  readonly acquires: number;
  readonly expired: number;
}

/** `worker`, when it has stopped */
export interface WorkerShape {
  readonly records: number;
  /** Records that could not be decoded. */
  readonly poison: number;
  readonly archived: number;
  readonly splits: number;
  /** Shards of the stream that lost records before they were read. */
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
  /** true: the lease has expired and is not reclaimed yet. */
  readonly expired: boolean;
}

/** Items of `bucket list`; `available` is null for an unlimited limit */
export interface BucketShape {
  readonly entityId: string;
  readonly resource: string;
  readonly limits: readonly { readonly limit: LimitText; readonly available: Left; readonly consumed: number }[];
  readonly holders: number;
  readonly acquires: number;
  readonly expired: number;
}

/** `bucket show` */
export interface BucketViewShape {
  /** null: there is no bucket, because nothing was taken or it was full for long: all limits are full. */
  readonly bucket: BucketShape | null;
}

/** `bucket reset` */
export interface ResetShape {
  /** false: there is no bucket, so that all limits are full. */
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

/** `limits plan`, `limits diff`; `limits apply`: the changes that were made */
export interface LimitsPlanShape {
  /** In the order in which they are made. */
  readonly changes: readonly {
    readonly action: 'create' | 'update' | 'delete';
    readonly target: LimitsTargetShape;
    /** null: the object does not exist yet. Unset fields are left out, here and below. */
    readonly before: LimitsFieldsShape | null;
    /** null: the object is deleted. */
    readonly after: LimitsFieldsShape | null;
  }[];
  /** Manual changes since the last apply that differ from the file. */
  readonly drift: readonly {
    readonly target: LimitsTargetShape;
    /** The fields that differ, as they were applied. */
    readonly applied: LimitsFieldsShape;
    /** The same fields as they are now; null: the object was removed. */
    readonly live: LimitsFieldsShape | null;
  }[];
  /** The number of objects that match the file. */
  readonly unchanged: number;
}

export type LimitsTargetShape =
  | { readonly kind: 'system' }
  | { readonly kind: 'resource'; readonly resource: string }
  | { readonly kind: 'record'; readonly entityId: string }
  | { readonly kind: 'entity_default'; readonly entityId: string }
  | { readonly kind: 'entity'; readonly entityId: string; readonly resource: string };

/** For a record `name`, `parent`, `cascade`, `metadata`; else `limits`, and for the system `onUnavailable`. */
export type LimitsFieldsShape = Readonly<Record<string, unknown>>;

/** `limits export`: a limits file, as JSON */
export interface LimitsExportShape {
  readonly namespace: string;
  readonly system?: Readonly<Record<string, unknown>>;
  readonly resources?: Readonly<Record<string, unknown>> | null;
  readonly entities?: Readonly<Record<string, unknown>> | null;
}

/** `reconcile`; with `--watch` one object per sweep, each on one line */
export interface ReconcileShape {
  readonly namespaces: number;
  /** Buckets that were read. */
  readonly visited: number;
  /** Expired leases that were reclaimed. */
  readonly reclaimed: number;
  /** Limits whose count of free slots was repaired. */
  readonly healed: number;
  /** Pairs of shards that were merged. */
  readonly merged: number;
  /** Buckets that were removed from the sweep list, because no lease holds slots. */
  readonly unmarked: number;
  /** Buckets that were written too often to be repaired in this sweep. */
  readonly busy: number;
  /** Buckets that could not be repaired; `failures` has the first 20. */
  readonly failed: number;
  readonly failures: readonly { readonly namespace: string; readonly bucket: string; readonly reason: string }[];
  /** false: it was interrupted. */
  readonly complete: boolean;
  readonly durationMs: number;
}

/** `migrate` */
export interface MigrateShape {
  /** The layout of the table before and after; 0: a layout without a number. */
  readonly from: number;
  readonly to: number;
  readonly dryRun: boolean;
  /** The migrations that found records. */
  readonly migrations: readonly {
    readonly id: string;
    readonly title: string;
    /** Old records that were found; new records that were written; old records that were removed. */
    readonly found: number;
    readonly written: number;
    readonly removed: number;
    /** Buckets that were in use already, and were charged what the old ones had spent. */
    readonly strict: number;
    /** Old records that cannot be converted and stay; `problems` has the first 20. */
    readonly left: number;
    readonly problems: readonly { readonly record: string; readonly reason: string }[];
  }[];
  /** Indexes that differ from the definition of this version. */
  readonly indexes: readonly {
    readonly index: string;
    readonly state: 'costly' | 'missing';
    readonly advice: string;
  }[];
  /** Settings of old records that this version does not have, and their effect on the limits. */
  readonly settings: readonly {
    readonly setting: string;
    readonly records: number;
    readonly treatment: 'converted' | 'dropped' | 'refused';
    readonly effect: string;
  }[];
}

/** `template`: the CloudFormation template */
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
