import type { AuditPageRequest, AuditRecord, NamespaceRecord, Page, PageRequest } from '../../../backend.js';
import type { EpochMs } from '../../../core/units.js';
import type { Registry } from '../storage.js';
import { insertAudit, selectAudit } from './rows/audit-rows.js';
import type { SqlValue } from './database/driver.js';
import { OWNED_TABLES } from './database/schema.js';
import { pageOfRows, type Statements } from './database/statements.js';

/** The namespace of the registry's own audit records. No id is that short. */
const REGISTRY_NS = '_';

const COLUMNS = 'id, name, status, created_at';

/** The table of namespaces, inside a transaction. */
export class FileRegistry implements Registry {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  active(name: string): NamespaceRecord | undefined {
    return decode(this.#sql(`SELECT ${COLUMNS} FROM namespaces WHERE name = ? AND status = 'active'`).get(name));
  }

  byId(id: string): NamespaceRecord | undefined {
    return decode(this.#sql(`SELECT ${COLUMNS} FROM namespaces WHERE id = ?`).get(id));
  }

  write({ id, name, status, createdAtMs }: NamespaceRecord): void {
    this.#sql(
      `INSERT INTO namespaces (${COLUMNS}) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET status = excluded.status`,
    ).run(id, name, status, createdAtMs);
  }

  list(kind: 'active' | 'orphaned', { limit, after }: PageRequest): Page<NamespaceRecord> {
    const [condition, key] =
      kind === 'active' ? (["status = 'active'", 'name'] as const) : (["status <> 'active'", 'id'] as const);
    const rows = this.#sql(
      `SELECT ${COLUMNS} FROM namespaces WHERE ${condition} AND ${key} > ? ORDER BY ${key} LIMIT ?`,
    ).all(after ?? '', limit + 1);
    return pageOfRows(rows, limit, decodeRow, (namespace) => namespace[key]);
  }

  clear(id: string): number {
    return OWNED_TABLES.reduce((sum, table) => sum + this.#sql(`DELETE FROM ${table} WHERE ns = ?`).run(id), 0);
  }

  addAudit(record: AuditRecord): void {
    insertAudit(this.#sql, REGISTRY_NS, record);
  }

  audit(subject: string, sinceMs: EpochMs, page: AuditPageRequest): Page<AuditRecord> {
    return selectAudit(this.#sql, REGISTRY_NS, subject, sinceMs, page);
  }
}

function decode(row: readonly SqlValue[] | undefined): NamespaceRecord | undefined {
  return row === undefined ? undefined : decodeRow(row);
}

function decodeRow(row: readonly SqlValue[]): NamespaceRecord {
  const [id, name, status, createdAtMs] = row as [string, string, NamespaceRecord['status'], number];
  return { id, name, status, createdAtMs };
}
