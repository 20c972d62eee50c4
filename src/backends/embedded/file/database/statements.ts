import type { Page } from '../../../../backend.js';
import type { SqliteDatabase, SqliteStatement, SqlValue } from './driver.js';

/** Prepares each text once. */
export type Statements = (sql: string) => SqliteStatement;

export function createStatements(database: SqliteDatabase): Statements {
  const prepared = new Map<string, SqliteStatement>();
  return (sql) => {
    let statement = prepared.get(sql);
    if (statement === undefined) {
      statement = database.prepare(sql);
      prepared.set(sql, statement);
    }
    return statement;
  };
}

/** `rows` has one more than `limit` if there is a next page. */
export function pageOfRows<T>(
  rows: readonly (readonly SqlValue[])[],
  limit: number,
  decode: (row: readonly SqlValue[]) => T,
  keyOf: (item: T) => string,
): Page<T> {
  const items = rows.slice(0, limit).map(decode);
  const last = items.at(-1);
  return { items, next: rows.length > limit && last !== undefined ? keyOf(last) : null };
}
