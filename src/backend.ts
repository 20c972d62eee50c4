/**
 * The port: what a store must do. The limiter resolves the parent chain and the limits of every level, and hands all
 * levels over at once; the backend alone decides how to write them (in one place, in parallel, in a transaction, over
 * shards). It speaks intent, never a store's dialect, and reads no clock: `nowMs` comes in with the call.
 *
 * A store that has the answer at hand returns it, not a promise of it: then no timer is set and no turn is lost.
 */
import type { ConfigLevel, ConfigLevels, ConfigVersion, OnUnavailable, StoredConfig } from './core/config/config.js';
import type { Amount, Holder, Verdict } from './core/bucket/decide.js';
import type { Int } from './core/int.js';
import type { Limit } from './core/limit.js';
import type { UsageCounts, UsageWindow } from './core/usage/usage.js';
import type { EpochMs } from './core/units.js';

export type Awaitable<T> = T | Promise<T>;

/** What every call brings along. */
export interface Call {
  readonly namespaceId: string;
  readonly nowMs: EpochMs;
  /** How long the store may take. The limiter stops listening after it. */
  readonly timeoutMs: number;
  /** Aborted once the caller has left: what was not sent yet need not be. */
  readonly signal?: AbortSignal | undefined;
  readonly tuning?: Tuning;
}

/** How a store over a network should go about its work: the limiter's options. */
export interface Tuning {
  /** Attempts against other writers before an ask is `contended`. */
  readonly maxRetries: number;
  /** How long a balance is remembered to deny from. */
  readonly denyCacheMs: number;
  /** How many times its longest fill time an idle bucket is kept. */
  readonly bucketLifeFactor: number;
  /** How long what operators set is remembered. */
  readonly configCacheMs: number;
  /** Hears of failures that no caller awaits. */
  readonly onError?: (error: unknown, where: string) => void;
}

/** A call that changes what an operator set: it leaves one record in the audit, in the same write as the change. */
export interface AdminCall extends Call {
  /** Who: null if nobody was named. */
  readonly principal: string | null;
  /** The id of the record that this call leaves: in the order of time. */
  readonly auditId: string;
  /** Written together with the change, or not at all: also where the change turns out to be none. */
  readonly managed?: ManagedMark | null;
}

/** What a declarative file owns of one object. */
export interface ManagedMark {
  /** Which object, as `core/manifest/managed.ts` builds it. */
  readonly key: string;
  /** Plain data: what was applied last. null: the file owns nothing of the object any more. */
  readonly value: unknown;
  /**
   * What the caller saw there, null for nothing: if it is something else by now, the call is refused as `contended` and
   * writes nothing. Left out: whatever it is.
   */
  readonly seen?: unknown;
}

/** One bucket and the limits by which it should live. */
export interface LevelRef {
  readonly entityId: string;
  /** The resource's name, or `{resource}~{hash}` for a bucket of per-call limits. */
  readonly resource: string;
  readonly limits: readonly Limit[];
  readonly version: ConfigVersion;
  /** The limits are of this very entity and resource: the bucket is kept, however long it is idle. */
  readonly lasting?: boolean;
}

/** Where a store put what a lease took (which shards, say): plain data that only the store reads. */
export type GrantLocation = unknown;

export interface LevelAsk extends LevelRef {
  /** What to take, per limit. A limit that the bucket lacks is not asked. */
  readonly asks: readonly Amount[];
  /** What to keep in the bucket until the lease ends, if anything. */
  readonly holder: Holder | null;
}

export interface LevelAnswer {
  /** One for each limit that was asked and exists: also what was taken, if granted. */
  readonly verdicts: readonly Verdict[];
  /** The bucket lives by newer and other rules than those handed in: it decided by its own. Read the config again. */
  readonly configIsOlder: boolean;
  /** Of a grant: handed back with everything that is done to the lease. */
  readonly place?: GrantLocation;
}

export interface ConsumeRequest {
  /** What holders are stored under; null if no level keeps one. */
  readonly leaseId: string | null;
  /** The entity first, then its parents. All or nothing. */
  readonly levels: readonly LevelAsk[];
  /** All levels in one transaction, also where that costs more: not even a crash may leave one without the others. */
  readonly atomic?: boolean;
}

/** `id-taken`: a holder of that id is there already. Nothing was taken: draw another id and ask again. */
export type ConsumeOutcome = ConsumeDecision | { readonly kind: 'id-taken' };

export type ConsumeDecision =
  | { readonly kind: 'granted'; readonly levels: readonly LevelAnswer[] }
  | {
      readonly kind: 'denied';
      readonly reason: 'exhausted' | 'contended' | 'impossible';
      readonly retryAfterMs: number | null;
      readonly levels: readonly LevelAnswer[];
      /** Decided from what this process remembers: the store was not asked. */
      readonly remembered?: boolean;
    };

export interface LevelChange extends LevelRef {
  /** Positive takes more, into debt if need be; negative gives back. Of rates and of unlimited limits. */
  readonly deltas: readonly Amount[];
  /**
   * What the lease will have taken of rates: charged whole, instead of the deltas, if an expiry gave everything back.
   * null: expiries of this lease keep the rates.
   */
  readonly totals: readonly Amount[] | null;
  /** What becomes of the lease's holder: there is none, it stays (with the new totals), it goes and its slots return. */
  readonly holder: 'none' | 'keep' | 'release';
  readonly place?: GrantLocation;
}

export interface AdjustRequest {
  readonly leaseId: string;
  readonly levels: readonly LevelChange[];
}

/** Levels fail one by one: what was done stays done, and a repetition sends only the rest. */
export type LevelResult =
  | { readonly kind: 'done'; readonly holderLost: boolean }
  | {
      readonly kind: 'failed';
      readonly error: unknown;
      /** What was to be given back may have been: made again, it could count twice. */
      readonly mayHaveRefunded?: boolean;
    };

export interface ExtendRequest {
  readonly leaseId: string;
  /** Those levels that keep a holder. */
  readonly levels: readonly { readonly entityId: string; readonly resource: string; readonly place?: GrantLocation }[];
  readonly expiresAtMs: EpochMs;
}

/** Everything that resolving one entity and resource needs, in one read. */
export interface ConfigRead {
  readonly levels: ConfigLevels;
  /** undefined: no record of the entity, so no parent. */
  readonly entity: { readonly parentId: string | null; readonly cascade: boolean } | undefined;
}

export interface ConfigChange {
  /** undefined: the stored field stays. null: it goes. */
  readonly limits?: readonly Limit[] | null;
  /** Replaces the stored limits of the same names, adds the others, and keeps the rest. Not together with `limits`. */
  readonly mergeLimits?: readonly Limit[];
  readonly onUnavailable?: OnUnavailable | null;
}

export interface ConfigStore {
  /** `known`: levels that the caller has just read for another entity of the resource, and that need not be read again. */
  readFor(
    call: Call,
    entityId: string,
    resource: string,
    known?: Pick<ConfigLevels, 'resource' | 'system'>,
  ): Awaitable<ConfigRead>;
  read(call: Call, level: ConfigLevel): Awaitable<StoredConfig | undefined>;
  /** At most `MAX_READ` levels, each as the last write left it; in the order of the levels. */
  readMany(call: Call, levels: readonly ConfigLevel[]): Awaitable<readonly (StoredConfig | undefined)[]>;
  /** Gives the stored config with the sequence number that this write took. */
  write(call: AdminCall, level: ConfigLevel, change: ConfigChange): Awaitable<StoredConfig>;
  /** Entities that have limits of their own for a resource. */
  list(call: Call, resource: string, page: PageRequest): Awaitable<Page<string>>;
  /** Every level that has something, each once, in an order of the store's own. */
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
  /** The `next` of the page before. */
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
  /** At most `MAX_READ` entities, each as the last write left it; in the order of the ids. */
  readMany(call: Call, ids: readonly string[]): Awaitable<readonly (EntityRecord | undefined)[]>;
  /** Rejects if the entity is missing, or is not of the version that the caller saw. */
  update(call: AdminCall, id: string, change: EntityChange, seenVersion: number | null): Awaitable<EntityRecord>;
  /**
   * Rejects if the entity is missing, has children, or is not of the version that the caller saw. Its buckets and usage
   * stay until their time is over.
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
  /** What the last mark of that key said; never null. */
  readonly value: unknown;
}

/** What declarative files own. Marks are written by the changes themselves; by `mark`, where there is nothing to change. */
export interface ManagedStore {
  /** In the order of the keys; shows every mark that was written. */
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

/** Outside of all namespaces. A name leads to the active one; one that was deleted keeps its data until it is purged, and its id for ever. */
export interface NamespaceStore {
  /** Gives the active namespace of that name, or registers it under `id`. */
  register(call: RegistryChange, name: string, id: string): Awaitable<NamespaceRecord>;
  /** The active namespace of that name. */
  read(call: RegistryCall, name: string): Awaitable<NamespaceRecord | undefined>;
  /** Active ones. */
  list(call: RegistryCall, page: PageRequest): Awaitable<Page<NamespaceRecord>>;
  /** Those that no name leads to: deleted, or being purged. */
  orphans(call: RegistryCall, page: PageRequest): Awaitable<Page<NamespaceRecord>>;
  /** Nothing of it can be used any more, and nothing is lost yet. */
  delete(call: RegistryChange, name: string): Awaitable<NamespaceRecord>;
  /** Undoes `delete`, unless the name was given away meanwhile. */
  recover(call: RegistryChange, id: string): Awaitable<NamespaceRecord>;
  /**
   * Removes everything that a deleted namespace has. Gives how many records that were. May go on for long: `timeoutMs`
   * is for each request that the store makes, not for all of them.
   */
  purge(call: RegistryChange, id: string): Awaitable<number>;
  audit(call: RegistryCall, name: string, page: PageRequest): Awaitable<Page<AuditRecord>>;
}

export type RegistryCall = Omit<Call, 'namespaceId'>;
export type RegistryChange = Omit<AdminCall, 'namespaceId'>;

/** What was changed. */
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
  /** An entity, `$SYSTEM`, `$RESOURCE:{name}` or `$NAMESPACE:{name}`. */
  readonly subject: string;
  /** Plain data; null where there was nothing. */
  readonly before: unknown;
  readonly after: unknown;
}

export interface AuditStore {
  /** In the order of time: of one subject, or of all. */
  list(call: Call, subject: string | null, page: PageRequest): Awaitable<Page<AuditRecord>>;
}

/** The state of one bucket, all shards together. An unlimited limit has no balance: its `availableMilli` is 0. */
export interface BucketRecord {
  readonly entityId: string;
  /** The key part: `{resource}~{hash}` for per-call limits. */
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
  /** By the plain name: buckets of per-call limits are among them. */
  listOfResource(call: Call, resource: string, page: PageRequest): Awaitable<Page<BucketRecord>>;
  /** Full, without holders; counters go on. False: there is no such bucket. */
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
  /** In the order of time, then of the entity. */
  query(call: Call, query: UsageQuery, page: PageRequest): Awaitable<Page<UsageRecord>>;
}

export type LeaseRecord = Holder & { readonly id: string };

export interface LeaseStore {
  list(call: Call, entityId: string, resource: string, page: PageRequest): Awaitable<Page<LeaseRecord>>;
}

export interface Backend {
  readonly name: string;
  /** Nothing outlives the process: worth a warning where that surprises. */
  readonly ephemeral: boolean;

  /** Loads code that it needs: on a cold machine that takes its time, and is none of the store's. */
  load?(): Promise<void>;
  /** Checks that the store is there and of a version that this code understands. Creates nothing. */
  open(timeoutMs: number): Awaitable<void>;
  close(): Awaitable<void>;
  /** The time that all clients of the store agree on, if they share it. It never goes back. null: not known yet. */
  storeTimeMs?(): EpochMs | null;

  /** Takes from all levels or none, in the order of the calls. Creates missing buckets full. Undoes what it took if it rejects. */
  consume(call: Call, request: ConsumeRequest): Awaitable<ConsumeOutcome>;
  /** Moves what a lease took, and gives back or keeps what it holds: one result per level. */
  adjust(call: Call, request: AdjustRequest): Awaitable<readonly LevelResult[]>;
  /** Moves the expiry of a lease's holders. False: at least one is gone, and with it the lease. */
  extend(call: Call, request: ExtendRequest): Awaitable<boolean>;
  /** What `consume` would say of each level, without writing. Every limit is asked, for 0 if not named. */
  peek(call: Call, levels: readonly LevelAsk[]): Awaitable<readonly LevelAnswer[]>;

  readonly config: ConfigStore;
  readonly entities: EntityStore;
  readonly managed: ManagedStore;
  readonly namespaces: NamespaceStore;
  readonly audit: AuditStore;
  readonly usage: UsageStore;
  readonly buckets: BucketStore;
  readonly leases: LeaseStore;
}
