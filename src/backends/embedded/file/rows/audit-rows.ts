import type { AuditPageRequest, AuditRecord, Page } from '../../../../backend.js';
import type { EpochMs } from '../../../../core/units.js';
import { decodeText, encodeText } from './codec.js';
import type { SqlValue } from '../database/driver.js';
import { pageOfRows, type Statements } from '../database/statements.js';

export function insertAudit(sql: Statements, ns: string, record: AuditRecord): void {
  const { id, subject, atMs, principal, action, before, after } = record;
  sql(`INSERT INTO audit (ns, ${AUDIT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`).run(
    ns,
    id,
    subject,
    atMs,
    encodeText(principal),
    action,
    JSON.stringify(before),
    JSON.stringify(after),
  );
}

export function selectAudit(
  sql: Statements,
  ns: string,
  subject: string | null,
  sinceMs: EpochMs,
  { limit, after, isDescending = false }: AuditPageRequest,
): Page<AuditRecord> {
  // No id begins with DEL.
  const range = [after ?? (isDescending ? '\u007f' : ''), Math.max(0, sinceMs), limit + 1] as const;
  const [beyond, order] = isDescending ? ['<', 'DESC'] : ['>', 'ASC'];
  const inRange = `id ${beyond} ? AND at >= ? ORDER BY id ${order} LIMIT ?`;
  const rows =
    subject === null
      ? sql(`SELECT ${AUDIT_COLUMNS} FROM audit WHERE ns = ? AND ${inRange}`).all(ns, ...range)
      : sql(`SELECT ${AUDIT_COLUMNS} FROM audit WHERE ns = ? AND subject = ? AND ${inRange}`).all(
          ns,
          subject,
          ...range,
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
  return {
    id,
    subject,
    atMs,
    principal: decodeText(principal),
    action,
    before: JSON.parse(before),
    after: JSON.parse(after),
  };
}
