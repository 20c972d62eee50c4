import type {
  AuditPageRequest,
  AuditRecord,
  ChargeReceipt,
  EntityRecord,
  LevelRecord,
  ManagedMark,
  ManagedRecord,
  Page,
  PageRequest,
  UsageQuery,
  UsageRecord,
} from '../../backend.js';
import type { ConfigLevel, StoredConfig } from '../../core/config/config.js';
import { parsePlainResource } from '../../core/identifiers.js';
import { buildLevelKey } from '../../core/manifest/managed.js';
import { TwoKeyMap } from '../../core/two-key-map.js';
import type { UsageCounts } from '../../core/usage/usage.js';
import type { EpochMs } from '../../core/units.js';
import type { Bucket, Home } from './bucket.js';
import { bucketsWhere, pageByOwner } from './bucket-listing.js';
import { IdleSweep } from './idle-sweep.js';
import { pageOf } from '../../core/paging.js';
import { Receipts } from './receipts.js';
import type { OwnedBucket, Space } from './storage.js';
import { UsageLedger } from './usage-ledger.js';
import { isForgettable } from './usage.js';

/** Below this number of buckets, idle ones are not removed. Each new one beyond it is a step of the sweep. */
const KEPT_BUCKETS = 10_000;

/** The number of audit records that are kept: the newest. */
const KEPT_AUDIT_RECORDS = 10_000;

/**
 * The tables of one namespace in this process's memory, bounded where traffic alone could make them grow. Records of
 * operators are copied in and out, so that a caller cannot change the store through its own objects. Buckets never
 * leave the backend and are not copied.
 */
export class MemorySpace implements Space {
  /** Not the space itself: a bucket that a caller keeps must not keep the tables of a purged namespace. */
  readonly home: Home = { isOpen: true };
  readonly #keptBuckets: number;
  readonly #buckets = new TwoKeyMap<Bucket>();
  readonly #sweep = new IdleSweep(this.#buckets, (owned, nowMs) => isForgettable(this, owned, owned.bucket, nowMs));
  readonly #configs = new Map<string, LevelRecord>();
  #sequence = 0;
  readonly #entities = new Map<string, EntityRecord>();
  readonly #marks = new Map<string, ManagedRecord>();
  #audit: AuditRecord[] = [];
  readonly #usage = new UsageLedger();
  readonly #receipts = new Receipts();

  constructor(keptBuckets: number = KEPT_BUCKETS) {
    this.#keptBuckets = keptBuckets;
  }

  /** The number of records of all kinds. */
  get size(): number {
    const set = this.#configs.size + this.#entities.size + this.#marks.size;
    return set + this.#buckets.size + this.#audit.length + this.#usage.size + this.#receipts.size;
  }

  readBucket(entityId: string, resource: string): Bucket | undefined {
    return this.#buckets.get(entityId, resource);
  }

  writeBucket(entityId: string, resource: string, bucket: Bucket, nowMs: EpochMs): void {
    // A stored bucket is changed in place.
    if (bucket.home === this.home) return;
    const replaced = this.#buckets.get(entityId, resource);
    if (replaced !== undefined) replaced.home = null;
    this.#buckets.set(entityId, resource, bucket);
    bucket.home = this.home;
    if (replaced === undefined && this.#buckets.size > this.#keptBuckets) this.#sweep.step(nowMs);
  }

  bucketsOfEntity(entityId: string, page: PageRequest): Page<OwnedBucket> {
    const owned = bucketsWhere(this.#buckets, (owner) => owner === entityId);
    return pageOf(owned, page, ({ resource }) => resource);
  }

  bucketsOfResource(resource: string, page: PageRequest): Page<OwnedBucket> {
    const isWanted = (_: string, keyPart: string): boolean => parsePlainResource(keyPart) === resource;
    return pageByOwner(bucketsWhere(this.#buckets, isWanted), page);
  }

  buckets(page: PageRequest): Page<OwnedBucket> {
    return pageByOwner(
      bucketsWhere(this.#buckets, () => true),
      page,
    );
  }

  readConfig(level: ConfigLevel): StoredConfig | undefined {
    const config = this.#configs.get(buildLevelKey(level))?.config;
    return config === undefined ? undefined : copyOfConfig(config);
  }

  writeConfig(level: ConfigLevel, config: StoredConfig): void {
    this.#configs.set(buildLevelKey(level), { level, config: copyOfConfig(config) });
  }

  entitiesWithConfig(resource: string, page: PageRequest): Page<string> {
    const entities: string[] = [];
    for (const { level, config } of this.#configs.values()) {
      if (level.kind === 'entity' && level.resource === resource && config.limits !== null)
        entities.push(level.entityId);
    }
    return pageOf(entities, page, (entityId) => entityId);
  }

  configs(page: PageRequest): Page<LevelRecord> {
    const present = [...this.#configs.values()].filter(({ config }) => config.limits ?? config.onUnavailable);
    const { items, next } = pageOf(present, page, ({ level }) => buildLevelKey(level));
    return { items: items.map(({ level, config }) => ({ level, config: copyOfConfig(config) })), next };
  }

  nextSequence(): number {
    this.#sequence += 1;
    return this.#sequence;
  }

  readEntity(id: string): EntityRecord | undefined {
    const entity = this.#entities.get(id);
    return entity === undefined ? undefined : structuredClone(entity);
  }

  writeEntity(entity: EntityRecord): void {
    this.#entities.set(entity.id, structuredClone(entity));
  }

  deleteEntity(id: string): void {
    this.#entities.delete(id);
  }

  entities(parentId: string | null, page: PageRequest): Page<EntityRecord> {
    const all = [...this.#entities.values()];
    const wanted = parentId === null ? all : all.filter((entity) => entity.parentId === parentId);
    return structuredClone(pageOf(wanted, page, ({ id }) => id));
  }

  readMark(key: string): ManagedRecord | undefined {
    return structuredClone(this.#marks.get(key));
  }

  writeMark({ key, value }: ManagedMark): void {
    if (value === null) this.#marks.delete(key);
    else this.#marks.set(key, structuredClone({ key, value }));
  }

  marks(page: PageRequest): Page<ManagedRecord> {
    return structuredClone(pageOf(this.#marks.values(), page, ({ key }) => key));
  }

  readReceipt(receipt: ChargeReceipt, nowMs: EpochMs): string | undefined {
    return this.#receipts.read(receipt, nowMs);
  }

  writeReceipt(receipt: ChargeReceipt, endMs: EpochMs, nowMs: EpochMs): void {
    this.#receipts.write(receipt, endMs, nowMs);
  }

  addAudit(record: AuditRecord): void {
    this.#audit = withAudit(this.#audit, structuredClone(record));
  }

  audit(subject: string | null, sinceMs: EpochMs, page: AuditPageRequest): Page<AuditRecord> {
    return structuredClone(pageOf(auditWhere(this.#audit, subject, sinceMs), page, ({ id }) => id));
  }

  addUsage(entityId: string, resource: string, hourMs: EpochMs, counts: UsageCounts): void {
    this.#usage.add(entityId, resource, hourMs, counts);
  }

  usage(query: UsageQuery, page: PageRequest): Page<UsageRecord> {
    return this.#usage.query(query, page);
  }
}

function copyOfConfig(config: StoredConfig): StoredConfig {
  return { ...config, limits: config.limits === null ? null : [...config.limits] };
}

/** The records with one more. The oldest half is dropped when there are twice as many as are kept. */
export function withAudit(records: AuditRecord[], record: AuditRecord): AuditRecord[] {
  records.push(record);
  return records.length > 2 * KEPT_AUDIT_RECORDS ? records.slice(-KEPT_AUDIT_RECORDS) : records;
}

export function auditWhere(
  records: readonly AuditRecord[],
  subject: string | null,
  sinceMs: EpochMs,
): readonly AuditRecord[] {
  return records.filter((record) => record.atMs >= sinceMs && (subject === null || record.subject === subject));
}
