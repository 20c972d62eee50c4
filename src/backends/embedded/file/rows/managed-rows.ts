import type { ManagedMark, ManagedRecord, Page, PageRequest } from '../../../../backend.js';
import type { SqlValue } from '../database/driver.js';
import { pageOfRows, type Statements } from '../database/statements.js';

/** A value of null removes the mark. */
export function writeMark(sql: Statements, ns: string, { key, value }: ManagedMark): void {
  if (value === null) sql('DELETE FROM managed WHERE ns = ? AND key = ?').run(ns, key);
  else sql('INSERT OR REPLACE INTO managed (ns, key, value) VALUES (?, ?, ?)').run(ns, key, JSON.stringify(value));
}

export function selectMark(sql: Statements, ns: string, key: string): ManagedRecord | undefined {
  const row = hasMarks(sql) ? sql('SELECT key, value FROM managed WHERE ns = ? AND key = ?').get(ns, key) : undefined;
  return row === undefined ? undefined : decodeMark(row);
}

/** In the order of their keys. */
export function selectMarks(sql: Statements, ns: string, { limit, after }: PageRequest): Page<ManagedRecord> {
  const rows = hasMarks(sql)
    ? sql('SELECT key, value FROM managed WHERE ns = ? AND key > ? ORDER BY key LIMIT ?').all(
        ns,
        after ?? '',
        limit + 1,
      )
    : [];
  return pageOfRows(rows, limit, decodeMark, ({ key }) => key);
}

/** A file of format 1 does not have the table until the first write. */
function hasMarks(sql: Statements): boolean {
  return sql(`SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'managed'`).get() !== undefined;
}

function decodeMark(row: readonly SqlValue[]): ManagedRecord {
  const [key, value] = row as [string, string];
  return { key, value: JSON.parse(value) as unknown };
}
