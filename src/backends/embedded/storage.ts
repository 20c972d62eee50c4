import type { Awaitable, EntityRecord, NamespaceRecord, UsageRecord } from '../../backend.js';
import type { ConfigLevel, StoredConfig } from '../../core/config.js';
import type { UsageCounts, UsageWindow } from '../../core/usage.js';
import type { EpochMs } from '../../core/units.js';
import type { Bucket } from './bucket.js';

/** One namespace's tables, as seen inside a transaction. Everything is at hand: no method awaits. */
export interface Space {
  /** `resource` is the key part: `{resource}~{hash}` for a bucket of per-call limits. */
  readBucket(entityId: string, resource: string): Bucket | undefined;
  writeBucket(entityId: string, resource: string, bucket: Bucket, nowMs: EpochMs): void;
  /** All buckets of an entity, by key part. */
  bucketsOf(entityId: string): Iterable<readonly [resource: string, bucket: Bucket]>;

  readConfig(level: ConfigLevel): StoredConfig | undefined;
  writeConfig(level: ConfigLevel, config: StoredConfig): void;
  /** Entities with a stored config for the resource, in the order of their ids. */
  entitiesWithConfig(resource: string): readonly string[];
  /** The next number of the namespace's config sequence. */
  nextSequence(): number;

  readEntity(id: string): EntityRecord | undefined;
  writeEntity(entity: EntityRecord): void;

  /** Adds to the hourly, daily and monthly windows that contain the hour. */
  addUsage(entityId: string, resource: string, hourMs: EpochMs, counts: UsageCounts): void;
  /** In the order of time. */
  usageOf(entityId: string, resource: string, window: UsageWindow): readonly UsageRecord[];
}

export interface Registry {
  readNamespace(name: string): NamespaceRecord | undefined;
  writeNamespace(namespace: NamespaceRecord): void;
  namespaces(): readonly NamespaceRecord[];
}

/** Where an embedded backend keeps its tables. Work either happens wholly or not at all, and beside no other work. */
export interface Storage {
  readonly name: string;
  readonly ephemeral: boolean;
  open(timeoutMs: number): Awaitable<void>;
  close(): Awaitable<void>;
  /** Runs `work` on an active namespace's tables. */
  transact<T>(namespaceId: string, timeoutMs: number, work: (space: Space) => T): Awaitable<T>;
  transactRegistry<T>(work: (registry: Registry) => T): Awaitable<T>;
}
