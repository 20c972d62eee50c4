import type { AuditRecord, Page, PageRequest } from '../../../backend.js';
import type { SqlValue } from './driver.js';
import { pageOfRows, type Statements } from './statements.js';

export function insertAudit(sql: Statements, ns: string, record: AuditRecord): void {
  const { id, subject, atMs, principal, action, before, after } = record;
  sql(`INSERT INTO audit (ns, ${AUDIT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`).run(
    ns,
    id,
    subject,
    atMs,
    principal,
    action,
    JSON.stringify(before),
    JSON.stringify(after),
  );
}

export function selectAudit(
  sql: Statements,
  ns: string,
  subject: string | null,
  { limit, after }: PageRequest,
): Page<AuditRecord> {
  const rows =
    subject === null
      ? sql(`SELECT ${AUDIT_COLUMNS} FROM audit WHERE ns = ? AND id > ? ORDER BY id LIMIT ?`).all(
          ns,
          after ?? '',
          limit + 1,
        )
      : sql(`SELECT ${AUDIT_COLUMNS} FROM audit WHERE ns = ? AND subject = ? AND id > ? ORDER BY id LIMIT ?`).all(
          ns,
          subject,
          after ?? '',
          limit + 1,
        );
  return pageOfRows(rows, limit, decodeAudit, ({ id }) => id);
}

const AUDIT_COLUMNS = 'id, subject, at, principal, action, before, after';

function decodeAudit(row: readonly SqlValue[]): AuditRecord {
  const [id, subject, atMs, principal, action, before, after] = row as [
    string,
    string,
    number,
    string | null,
    AuditRecord['action'],
    string,
    string,
  ];
  return { id, subject, atMs, principal, action, before: JSON.parse(before), after: JSON.parse(after) };
}
