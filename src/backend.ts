/**
 * The port: what a store must do. The limiter resolves the parent chain and the limits of every level, and passes all
 * levels in one call. The backend alone decides how to write them (one item, parallel writes, a transaction, shards).
 * The port states intent and has no store-specific terms. A backend reads no clock: each call passes `nowMs`.
 *
 * Return a plain value when the result is available synchronously: the limiter then sets no timer and awaits nothing.
 */
import type { ConfigLevel, ConfigLevels, ConfigVersion, OnUnavailable, StoredConfig } from './core/config/config.js';
import type { Amount, Holder, Verdict } from './core/bucket/decide.js';
import type { ResidentBuckets } from './core/bucket/resident-buckets.js';
import type { Int } from './core/int.js';
import type { Limit } from './core/limit.js';
import type { UsageCounts, UsageWindow } from './core/usage/usage.js';
import type { EpochMs } from './core/units.js';

export type Awaitable<T> = T | Promise<T>;

/** The fields that every call has. */
export interface Call {
  readonly namespaceId: string;
  readonly nowMs: EpochMs;
  /** How long the store may take. The limiter ignores an answer that comes later. */
  readonly timeoutMs: number;
  /** Aborts when the caller stops waiting. The store may drop requests that it has not sent yet. */
  readonly signal?: AbortSignal | undefined;
  readonly tuning?: Tuning;
}

/** The limiter options that a store over a network needs. */
export interface Tuning {
  /** How many writes may lose against other writers before an ask is denied as `contended`. */
  readonly maxRetries: number;
  /** How long a cached balance may be used to deny. */
  readonly denyCacheMs: number;
  /** An idle bucket is kept for this many times its longest fill time. */
  readonly bucketLifeFactor: number;
  /** How long configuration, entities and namespaces may be cached. */
  readonly configCacheMs: number;
  /** Called with failures that no caller awaits. */
  readonly onError?: (error: unknown, where: string) => void;
}

/** A call that makes an administrative change. The same write adds one audit record. */
export interface AdminCall extends Call {
  /** Who makes the change; null if the limiter has no `principal`. */
  readonly principal: string | null;
  /** The id of the audit record that this call adds. Ids sort by time. */
  readonly auditId: string;
  /** Written in the same write as the change, and also when the change turns out to change nothing. */
  readonly managed?: ManagedMark | null;
}

/** What a declarative file owns of one object. */
export interface ManagedMark {
  /** The key of the object, built by `core/manifest/managed.ts`. */
  readonly key: string;
  /** Plain data: the fields that were applied last. null: the file no longer owns any field of the object. */
  readonly value: unknown;
  /** The value that the caller saw, null for none. If another is stored, the call is refused as `contended`. Left out: not compared. */
  readonly seen?: unknown;
}

/** One bucket and the limits that it should apply. */
export interface LevelRef {
  readonly entityId: string;
  /** The resource's name, or `{resource}~{hash}` for a bucket of per-call limits. */
  readonly resource: string;
  readonly limits: readonly Limit[];
  readonly version: ConfigVersion;
  /** The limits are configured for exactly this entity and resource: the bucket is kept however long it is idle. */
  readonly lasting?: boolean;
}

/** Where a store recorded what a lease took (for example in which shards): plain data that only the store reads. */
export type GrantLocation = unknown;

export interface LevelAsk extends LevelRef {
  /** The amount to take from each limit. Names of limits that the bucket does not have are ignored. */
  readonly asks: readonly Amount[];
  /** The holder to store in the bucket until the lease ends; null for none. */
  readonly holder: Holder | null;
}

export interface LevelAnswer {
  /** One for each limit that was asked and exists. If the ask was granted, each also says what was taken. */
  readonly verdicts: readonly Verdict[];
  /** The bucket has newer and different rules than the ask, and decided by them. The client must read the config again. */
  readonly configIsOlder: boolean;
  /** Set on a grant. The limiter passes it with every later call for the lease. */
  readonly place?: GrantLocation;
}

export interface ConsumeRequest {
  /** The key of the holders; null if no level keeps one. */
  readonly leaseId: string | null;
  /** The entity first, then its parents. Either every level grants or nothing is taken. */
  readonly levels: readonly LevelAsk[];
  /** Writes all levels in one transaction, even where that costs more: a crash cannot leave only some levels charged. */
  readonly atomic?: boolean;
}

/** `id-taken`: the bucket already has a holder with that id. Nothing was taken: ask again with another id. */
export type ConsumeOutcome = ConsumeDecision | { readonly kind: 'id-taken' };

export type ConsumeDecision =
  | { readonly kind: 'granted'; readonly levels: readonly LevelAnswer[] }
  | {
      readonly kind: 'denied';
      readonly reason: 'exhausted' | 'contended' | 'impossible';
      readonly retryAfterMs: number | null;
      readonly levels: readonly LevelAnswer[];
      /** The deny cache of this process decided, without a request to the store. */
      readonly remembered?: boolean;
    };

export interface LevelChange extends LevelRef {
  /** A positive delta takes more and may cause debt; a negative delta gives back. Of rates and unlimited limits. */
  readonly deltas: readonly Amount[];
  /**
   * What the lease has taken from rates after this change. If an expiry has given everything back, these totals are
   * charged instead of the deltas. null: an expiry of this lease does not give rates back.
   */
  readonly totals: readonly Amount[] | null;
  /** `none`: there is no holder. `keep`: it stays, with the new totals. `release`: it is removed and its slots return. */
  readonly holder: 'none' | 'keep' | 'release';
  readonly place?: GrantLocation;
}

export interface AdjustRequest {
  readonly leaseId: string;
  readonly levels: readonly LevelChange[];
}

/** Each level succeeds or fails separately. A successful level is not undone; a retry sends only the failed levels. */
export type LevelResult =
  | { readonly kind: 'done'; readonly holderLost: boolean }
  | {
      readonly kind: 'failed';
      readonly error: unknown;
      /** The refund may have landed. A retry could give it back twice. */
      readonly mayHaveRefunded?: boolean;
    };

export interface ExtendRequest {
  readonly leaseId: string;
  /** Only the levels that keep a holder. */
  readonly levels: readonly { readonly entityId: string; readonly resource: string; readonly place?: GrantLocation }[];
  readonly expiresAtMs: EpochMs;
}

/** Everything that resolving one entity and resource needs, in one read. */
export interface ConfigRead {
  readonly levels: ConfigLevels;
  /** undefined: the entity has no record, so it has no parent. */
  readonly entity: { readonly parentId: string | null; readonly cascade: boolean } | undefined;
}

export interface ConfigChange {
  /** undefined: the stored field stays. null: the stored field is removed. */
  readonly limits?: readonly Limit[] | null;
  /** Replaces the stored limits of the same names, adds the others, and keeps the rest. Not together with `limits`. */
  readonly mergeLimits?: readonly Limit[];
  readonly onUnavailable?: OnUnavailable | null;
}

export interface ConfigStore {
  /** `known`: levels that the caller has just read for another entity of the resource. The store need not read them again. */
  readFor(
    call: Call,
    entityId: string,
    resource: string,
    known?: Pick<ConfigLevels, 'resource' | 'system'>,
  ): Awaitable<ConfigRead>;
  read(call: Call, level: ConfigLevel): Awaitable<StoredConfig | undefined>;
  /** At most `MAX_READ` levels. Each result is consistent with the last write, in the order of `levels`. */
  readMany(call: Call, levels: readonly ConfigLevel[]): Awaitable<readonly (StoredConfig | undefined)[]>;
  /** Returns the stored config with the sequence number of this write. */
  write(call: AdminCall, level: ConfigLevel, change: ConfigChange): Awaitable<StoredConfig>;
  /** Entities that have limits of their own for a resource. */
  list(call: Call, resource: string, page: PageRequest): Awaitable<Page<string>>;
  /** Every level that has a config, each once. The store chooses the order. */
  all(call: Call, page: PageRequest): Awaitable<Page<LevelRecord>>;
}

/** How many records a `readMany` may name. */
export const MAX_READ = 100;

export interface LevelRecord {
  readonly level: ConfigLevel;
  readonly config: StoredConfig;
}

export interface PageRequest {
  readonly limit: number;
  /** The `next` of the previous page; null for the first page. */
  readonly after: string | null;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** null: this was the last page. */
  readonly next: string | null;
}

export interface EntityRecord {
  readonly id: string;
  readonly name: string | null;
  readonly parentId: string | null;
  readonly cascade: boolean;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly createdAtMs: EpochMs;
  readonly version: number;
}

export interface EntityStore {
  /** Rejects if the entity exists or its parent does not. */
  create(call: AdminCall, entity: Omit<EntityRecord, 'createdAtMs' | 'version'>): Awaitable<EntityRecord>;
  read(call: Call, id: string): Awaitable<EntityRecord | undefined>;
  /** At most `MAX_READ` entities. Each result is consistent with the last write, in the order of `ids`. */
  readMany(call: Call, ids: readonly string[]): Awaitable<readonly (EntityRecord | undefined)[]>;
  /** Rejects if the entity is missing or has another version than `seenVersion`. */
  update(call: AdminCall, id: string, change: EntityChange, seenVersion: number | null): Awaitable<EntityRecord>;
  /**
   * Rejects if the entity is missing, has children, or has another version than `seenVersion`. Its buckets and usage
   * stay until they expire.
   */
  delete(call: AdminCall, id: string, seenVersion?: number | null): Awaitable<void>;
  list(call: Call, page: PageRequest): Awaitable<Page<EntityRecord>>;
  children(call: Call, parentId: string, page: PageRequest): Awaitable<Page<EntityRecord>>;
}

/** undefined: the field stays. */
export interface EntityChange {
  readonly name?: string | null;
  readonly parentId?: string | null;
  readonly cascade?: boolean;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export interface ManagedRecord {
  readonly key: string;
  /** The value of the last mark with that key; never null. */
  readonly value: unknown;
}

/** What declarative files own. A change writes its mark itself; `mark` writes one where there is nothing to change. */
export interface ManagedStore {
  /** Every mark, in the order of the keys. */
  list(call: Call, page: PageRequest): Awaitable<Page<ManagedRecord>>;
  read(call: Call, key: string): Awaitable<ManagedRecord | undefined>;
  mark(call: Call, mark: ManagedMark): Awaitable<void>;
}

export interface NamespaceRecord {
  readonly id: string;
  readonly name: string;
  readonly status: 'active' | 'deleted' | 'purging';
  readonly createdAtMs: EpochMs;
}

/** The registry. A name belongs to at most one active namespace. A deleted one keeps its data until it is purged, and its id for ever. */
export interface NamespaceStore {
  /** Returns the active namespace with that name, or registers one under `id`. */
  register(call: RegistryChange, name: string, id: string): Awaitable<NamespaceRecord>;
  /** The active namespace with that name. */
  read(call: RegistryCall, name: string): Awaitable<NamespaceRecord | undefined>;
  /** The active namespaces. */
  list(call: RegistryCall, page: PageRequest): Awaitable<Page<NamespaceRecord>>;
  /** The namespaces that no name belongs to: deleted, or being purged. */
  orphans(call: RegistryCall, page: PageRequest): Awaitable<Page<NamespaceRecord>>;
  /** Makes the namespace unusable. Its data stays until `purge`. */
  delete(call: RegistryChange, name: string): Awaitable<NamespaceRecord>;
  /** Undoes `delete`. Rejects if the name was registered again meanwhile. */
  recover(call: RegistryChange, id: string): Awaitable<NamespaceRecord>;
  /**
   * Removes all data of a deleted namespace and returns how many records were removed. May take long: `timeoutMs` applies
   * to each request that the store makes, not to the whole purge.
   */
  purge(call: RegistryChange, id: string): Awaitable<number>;
  audit(call: RegistryCall, name: string, page: PageRequest): Awaitable<Page<AuditRecord>>;
}

export type RegistryCall = Omit<Call, 'namespaceId'>;
export type RegistryChange = Omit<AdminCall, 'namespaceId'>;

export type AuditAction =
  | 'entity.create'
  | 'entity.update'
  | 'entity.delete'
  | 'config.set'
  | 'config.delete'
  | 'bucket.reset'
  | 'namespace.register'
  | 'namespace.delete'
  | 'namespace.recover'
  | 'namespace.purge';

export interface AuditRecord {
  readonly id: string;
  readonly atMs: EpochMs;
  readonly principal: string | null;
  readonly action: AuditAction;
  /** An entity id, `$SYSTEM`, `$RESOURCE:{name}` or `$NAMESPACE:{name}`. */
  readonly subject: string;
  /** Plain data; null where there was nothing. */
  readonly before: unknown;
  readonly after: unknown;
}

export interface AuditStore {
  /** In the order of time, for one subject; null: for all subjects. */
  list(call: Call, subject: string | null, page: PageRequest): Awaitable<Page<AuditRecord>>;
}

/** The state of one bucket, with all shards added up. An unlimited limit has no balance: its `availableMilli` is 0. */
export interface BucketRecord {
  readonly entityId: string;
  /** The resource's name, or `{resource}~{hash}` for a bucket of per-call limits. */
  readonly resource: string;
  readonly limits: readonly {
    readonly limit: Limit;
    readonly availableMilli: Int;
    readonly consumedMilli: Int;
  }[];
  readonly holders: number;
  readonly acquires: number;
  readonly expired: number;
}

export interface BucketStore {
  read(call: Call, entityId: string, resource: string): Awaitable<BucketRecord | undefined>;
  listOfEntity(call: Call, entityId: string, page: PageRequest): Awaitable<Page<BucketRecord>>;
  /** `resource` is the plain name. The result includes buckets of per-call limits. */
  listOfResource(call: Call, resource: string, page: PageRequest): Awaitable<Page<BucketRecord>>;
  /** Fills the bucket and removes its holders; usage counters keep their values. False: there is no such bucket. */
  reset(call: AdminCall, entityId: string, resource: string): Awaitable<boolean>;
}

export interface UsageQuery {
  /** null: all entities. */
  readonly entityId: string | null;
  readonly resource: string;
  readonly window: UsageWindow;
  /** Windows that begin at or after `fromMs` and before `toMs`. */
  readonly fromMs: EpochMs;
  readonly toMs: EpochMs;
}

export interface UsageRecord extends UsageCounts {
  readonly entityId: string;
  readonly resource: string;
  readonly window: UsageWindow;
  readonly startMs: EpochMs;
}

export interface UsageStore {
  /** Sorted by time, then by entity. */
  query(call: Call, query: UsageQuery, page: PageRequest): Awaitable<Page<UsageRecord>>;
}

export type LeaseRecord = Holder & { readonly id: string };

export interface LeaseStore {
  list(call: Call, entityId: string, resource: string, page: PageRequest): Awaitable<Page<LeaseRecord>>;
}

export interface Backend {
  readonly name: string;
  /** The data is lost when the process ends. A program may warn where that would surprise its user. */
  readonly ephemeral: boolean;

  /** Loads code that the backend needs. That can be slow on a cold machine and must not count as a slow store. */
  load?(): Promise<void>;
  /** Checks that the store exists and has a version that this code supports. Creates nothing. */
  open(timeoutMs: number): Awaitable<void>;
  close(): Awaitable<void>;
  /** The time that all clients of the store share, if there is one. It never goes back. null: not known yet. */
  storeTimeMs?(): EpochMs | null;

  /** Takes from all levels or none, in the order of the calls. Creates missing buckets full. Undoes its takes before it rejects. */
  consume(call: Call, request: ConsumeRequest): Awaitable<ConsumeOutcome>;
  /** Changes what a lease has taken, and keeps or removes its holder. One result per level. */
  adjust(call: Call, request: AdjustRequest): Awaitable<readonly LevelResult[]>;
  /** Moves the expiry of a lease's holders. False: at least one holder no longer exists, so the lease is lost. */
  extend(call: Call, request: ExtendRequest): Awaitable<boolean>;
  /** The answer that `consume` would give for each level, without a write. A limit that the ask does not name is asked for 0. */
  peek(call: Call, levels: readonly LevelAsk[]): Awaitable<readonly LevelAnswer[]>;
  /** A shorter way than `consume`, for a store whose buckets are objects of this process. */
  readonly resident?: ResidentBuckets;

  readonly config: ConfigStore;
  readonly entities: EntityStore;
  readonly managed: ManagedStore;
  readonly namespaces: NamespaceStore;
  readonly audit: AuditStore;
  readonly usage: UsageStore;
  readonly buckets: BucketStore;
  readonly leases: LeaseStore;
}
