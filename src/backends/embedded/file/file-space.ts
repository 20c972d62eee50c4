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
} from '../../../backend.js';
import type { ConfigLevel, StoredConfig } from '../../../core/config/config.js';
import { buildBucketKey, parseBucketKey } from '../../../core/identifiers.js';
import type { UsageCounts } from '../../../core/usage/usage.js';
import type { EpochMs } from '../../../core/units.js';
import type { Bucket } from '../bucket.js';
import type { OwnedBucket, Space } from '../storage.js';
import { insertAudit, selectAudit } from './rows/audit-rows.js';
import { BucketRows } from './rows/bucket-rows.js';
import { decodeBucket, decodeText, encodeText } from './rows/codec.js';
import { selectConfig, selectConfigs, selectEntitiesWithConfig, writeConfig } from './rows/config-rows.js';
import type { SqlValue } from './database/driver.js';
import { selectMark, selectMarks, writeMark } from './rows/managed-rows.js';
import { withPauses, writePause } from './rows/pause-rows.js';
import { pageOfRows, type Statements } from './database/statements.js';
import { addToUsage, selectUsage } from './rows/usage-rows.js';

/** The rows of one namespace in a file, inside a transaction. */
export class FileSpace implements Space {
  readonly #sql: Statements;
  readonly #ns: string;
  readonly #buckets: BucketRows;

  constructor(sql: Statements, namespaceId: string, buckets: BucketRows = new BucketRows(sql, namespaceId, null)) {
    this.#sql = sql;
    this.#ns = namespaceId;
    this.#buckets = buckets;
  }

  readBucket(entityId: string, resource: string): Bucket | undefined {
    return this.#buckets.read(entityId, resource);
  }

  writeBucket(entityId: string, resource: string, bucket: Bucket): void {
    this.#buckets.write(entityId, resource, bucket);
  }

  bucketsOfEntity(entityId: string, { limit, after }: PageRequest): Page<OwnedBucket> {
    const rows = this.#sql(
      'SELECT entity, resource, state FROM buckets WHERE ns = ? AND entity = ? AND resource > ? ORDER BY resource LIMIT ?',
    ).all(this.#ns, entityId, after ?? '', limit + 1);
    return pageOfRows(rows, limit, decodeOwned, ({ resource }) => resource);
  }

  bucketsOfResource(resource: string, { limit, after }: PageRequest): Page<OwnedBucket> {
    const seen = parseBucketKey(after ?? '#');
    const rows = this.#sql(
      `SELECT entity, resource, state FROM buckets
       WHERE ns = ? AND plain = ? AND (entity, resource) > (?, ?) ORDER BY entity, resource LIMIT ?`,
    ).all(this.#ns, resource, seen.entityId, seen.resource, limit + 1);
    return pageOfRows(rows, limit, decodeOwned, (owned) => buildBucketKey(owned.entityId, owned.resource));
  }

  buckets({ limit, after }: PageRequest): Page<OwnedBucket> {
    const seen = parseBucketKey(after ?? '#');
    const rows = this.#sql(
      `SELECT entity, resource, state FROM buckets
       WHERE ns = ? AND (entity, resource) > (?, ?) ORDER BY entity, resource LIMIT ?`,
    ).all(this.#ns, seen.entityId, seen.resource, limit + 1);
    return pageOfRows(rows, limit, decodeOwned, (owned) => buildBucketKey(owned.entityId, owned.resource));
  }

  readConfig(level: ConfigLevel): StoredConfig | undefined {
    return selectConfig(this.#sql, this.#ns, level);
  }

  writeConfig(level: ConfigLevel, config: StoredConfig): void {
    writeConfig(this.#sql, this.#ns, level, config);
  }

  entitiesWithConfig(resource: string, page: PageRequest): Page<string> {
    return selectEntitiesWithConfig(this.#sql, this.#ns, resource, page);
  }

  configs(page: PageRequest): Page<LevelRecord> {
    return selectConfigs(this.#sql, this.#ns, page);
  }

  nextSequence(): number {
    const row = this.#sql('UPDATE namespaces SET sequence = sequence + 1 WHERE id = ? RETURNING sequence').get(
      this.#ns,
    );
    return Number(row?.[0]);
  }

  readEntity(id: string): EntityRecord | undefined {
    const row = this.#sql(`SELECT ${ENTITY_COLUMNS} FROM entities WHERE ns = ? AND id = ?`).get(this.#ns, id);
    return row === undefined ? undefined : withPauses(this.#sql, this.#ns, [decodeEntity(row)])[0];
  }

  writeEntity(entity: EntityRecord): void {
    const { id, name, parentId, metadata, createdAtMs, version, pause } = entity;
    writePause(this.#sql, this.#ns, id, pause);
    this.#sql(`INSERT OR REPLACE INTO entities (ns, ${ENTITY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`).run(
      this.#ns,
      id,
      encodeText(name),
      parentId,
      encodeFlags(entity),
      JSON.stringify(metadata),
      createdAtMs,
      version,
    );
  }

  deleteEntity(id: string): void {
    this.#sql('DELETE FROM entities WHERE ns = ? AND id = ?').run(this.#ns, id);
    writePause(this.#sql, this.#ns, id, undefined);
  }

  entities(parentId: string | null, { limit, after }: PageRequest): Page<EntityRecord> {
    const rows =
      parentId === null
        ? this.#sql(`SELECT ${ENTITY_COLUMNS} FROM entities WHERE ns = ? AND id > ? ORDER BY id LIMIT ?`).all(
            this.#ns,
            after ?? '',
            limit + 1,
          )
        : this.#sql(
            `SELECT ${ENTITY_COLUMNS} FROM entities WHERE ns = ? AND parent = ? AND id > ? ORDER BY id LIMIT ?`,
          ).all(this.#ns, parentId, after ?? '', limit + 1);
    const { items, next } = pageOfRows(rows, limit, decodeEntity, ({ id }) => id);
    return { items: withPauses(this.#sql, this.#ns, items), next };
  }

  readMark(key: string): ManagedRecord | undefined {
    return selectMark(this.#sql, this.#ns, key);
  }

  writeMark(mark: ManagedMark): void {
    writeMark(this.#sql, this.#ns, mark);
  }

  marks(page: PageRequest): Page<ManagedRecord> {
    return selectMarks(this.#sql, this.#ns, page);
  }

  readReceipt({ entityId, resource, id }: ChargeReceipt, nowMs: EpochMs): string | undefined {
    const row = this.#sql(
      'SELECT content FROM receipts WHERE ns = ? AND entity = ? AND resource = ? AND id = ? AND ends_at > ?',
    ).get(this.#ns, entityId, resource, id, nowMs);
    return row === undefined ? undefined : String(row[0]);
  }

  writeReceipt({ entityId, resource, id, content }: ChargeReceipt, endMs: EpochMs): void {
    this.#sql(
      'INSERT OR REPLACE INTO receipts (ns, entity, resource, id, content, ends_at) VALUES (?, ?, ?, ?, ?, ?)',
    ).run(this.#ns, entityId, resource, id, content, endMs);
  }

  addAudit(record: AuditRecord): void {
    insertAudit(this.#sql, this.#ns, record);
  }

  audit(subject: string | null, sinceMs: EpochMs, page: AuditPageRequest): Page<AuditRecord> {
    return selectAudit(this.#sql, this.#ns, subject, sinceMs, page);
  }

  addUsage(entityId: string, resource: string, hourMs: EpochMs, counts: UsageCounts): void {
    addToUsage(this.#sql, this.#ns, { entityId, resource }, hourMs, counts);
  }

  usage(query: UsageQuery, page: PageRequest): Page<UsageRecord> {
    return selectUsage(this.#sql, this.#ns, query, page);
  }
}

/** The column `cascade` has two bits: 1 for cascade, 2 for bypass. A column more would make every older file unreadable. */
function encodeFlags({ cascade, bypass }: Pick<EntityRecord, 'cascade' | 'bypass'>): number {
  return (cascade ? 1 : 0) + (bypass === true ? 2 : 0);
}

function decodeFlags(flags: number): Pick<EntityRecord, 'cascade' | 'bypass'> {
  const cascade = flags % 2 === 1;
  return flags >= 2 ? { cascade, bypass: true } : { cascade };
}

const ENTITY_COLUMNS = 'id, name, parent, cascade, metadata, created_at, version';

function decodeEntity(row: readonly SqlValue[]): EntityRecord {
  const [id, name, parentId, flags, metadata, createdAtMs, version] = row as [
    string,
    string | null,
    string | null,
    number,
    string,
    number,
    number,
  ];
  return {
    id,
    name: decodeText(name),
    parentId,
    ...decodeFlags(flags),
    metadata: JSON.parse(metadata),
    createdAtMs,
    version,
  };
}

function decodeOwned(row: readonly SqlValue[]): OwnedBucket {
  const [entityId, resource, state] = row as [string, string, string];
  return { entityId, resource, bucket: decodeBucket(state) };
}
