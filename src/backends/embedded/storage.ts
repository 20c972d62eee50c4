import type {
  AuditPageRequest,
  AuditRecord,
  Awaitable,
  Call,
  ChargeReceipt,
  EntityRecord,
  LevelRecord,
  ManagedMark,
  ManagedRecord,
  NamespaceRecord,
  Page,
  PageRequest,
  RegistryCall,
  UsageQuery,
  UsageRecord,
} from '../../backend.js';
import type { ConfigLevel, StoredConfig } from '../../core/config/config.js';
import type { UsageCounts } from '../../core/usage/usage.js';
import type { EpochMs } from '../../core/units.js';
import type { Bucket } from './bucket.js';

/** A bucket with its key; `resource` is the key part, `{resource}~{hash}` for per-call limits. */
export interface OwnedBucket {
  readonly entityId: string;
  readonly resource: string;
  readonly bucket: Bucket;
}

/** The tables of one namespace inside a transaction. All methods are synchronous. */
export interface Space {
  readBucket(entityId: string, resource: string): Bucket | undefined;
  writeBucket(entityId: string, resource: string, bucket: Bucket, nowMs: EpochMs): void;
  /** In the order of the key part. */
  bucketsOfEntity(entityId: string, page: PageRequest): Page<OwnedBucket>;
  /** By the plain name of the resource; in the order of entity and key part. */
  bucketsOfResource(resource: string, page: PageRequest): Page<OwnedBucket>;
  /** In the order of entity and key part. */
  buckets(page: PageRequest): Page<OwnedBucket>;

  readConfig(level: ConfigLevel): StoredConfig | undefined;
  writeConfig(level: ConfigLevel, config: StoredConfig): void;
  /** Entities with their own limits for the resource, in the order of their ids. */
  entitiesWithConfig(resource: string, page: PageRequest): Page<string>;
  /** Levels with settings. */
  configs(page: PageRequest): Page<LevelRecord>;
  /** The next number of the namespace's config sequence. */
  nextSequence(): number;

  readEntity(id: string): EntityRecord | undefined;
  writeEntity(entity: EntityRecord): void;
  deleteEntity(id: string): void;
  /** In the order of their ids: all, or those of one parent. */
  entities(parentId: string | null, page: PageRequest): Page<EntityRecord>;

  readMark(key: string): ManagedRecord | undefined;
  /** A value of null removes the mark. */
  writeMark(mark: ManagedMark): void;
  /** In the order of their keys. */
  marks(page: PageRequest): Page<ManagedRecord>;

  /** The content of a receipt that has not ended. */
  readReceipt(receipt: ChargeReceipt, nowMs: EpochMs): string | undefined;
  writeReceipt(receipt: ChargeReceipt, endMs: EpochMs, nowMs: EpochMs): void;

  addAudit(record: AuditRecord): void;
  /** In the order of their ids, from a time: all, or those of one subject. */
  audit(subject: string | null, sinceMs: EpochMs, page: AuditPageRequest): Page<AuditRecord>;

  /** Adds to the hourly, daily and monthly windows that contain the hour. */
  addUsage(entityId: string, resource: string, hourMs: EpochMs, counts: UsageCounts): void;
  /** In the order of time, then of the entity. */
  usage(query: UsageQuery, page: PageRequest): Page<UsageRecord>;
}

export interface Registry {
  /** The active namespace of that name. */
  active(name: string): NamespaceRecord | undefined;
  byId(id: string): NamespaceRecord | undefined;
  write(namespace: NamespaceRecord): void;
  /** Active namespaces in the order of their names, orphaned ones in the order of their ids. */
  list(kind: 'active' | 'orphaned', page: PageRequest): Page<NamespaceRecord>;
  /** Removes all records of a namespace, and returns how many there were. */
  clear(id: string): number;
  addAudit(record: AuditRecord): void;
  audit(subject: string, sinceMs: EpochMs, page: AuditPageRequest): Page<AuditRecord>;
}

/** The tables of an embedded backend. Work is atomic, and no other write runs at the same time. */
export interface Storage {
  readonly name: string;
  readonly ephemeral: boolean;
  open(timeoutMs: number): Awaitable<void>;
  close(): Awaitable<void>;
  /** The time that all processes which share the tables use; null: not known yet. */
  storeTimeMs?(): EpochMs | null;
  /** Runs `work`, which must not write, on an active namespace's tables. */
  read<T>(call: Call, work: (space: Space) => T): Awaitable<T>;
  write<T>(call: Call, work: (space: Space) => T): Awaitable<T>;
  /** For tables that are objects of this process: the stored bucket itself, which a later call may change in place. */
  residentBucket?(namespaceId: string, entityId: string, resource: string): Bucket | undefined;
  readRegistry<T>(call: RegistryCall, work: (registry: Registry) => T): Awaitable<T>;
  writeRegistry<T>(call: RegistryCall, work: (registry: Registry) => T): Awaitable<T>;
}
