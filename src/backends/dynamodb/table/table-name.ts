import { ValidationError } from '../../../core/errors.js';

/** What DynamoDB takes as the name of a table. */
export const TABLE_NAME = '3 to 255 letters, digits, "_", "." or "-"';

/** A name, or an ARN, which DynamoDB takes in its place. */
export function isTableName(text: unknown): text is string {
  return typeof text === 'string' && /^(?:[A-Za-z0-9_.-]{3,255}|arn:[A-Za-z0-9_.:/-]{1,1020})$/.test(text);
}

/** The table's name, under either of the two words for it. */
export type NamedTable =
  | { readonly table: string; readonly tableName?: string }
  | { readonly tableName: string; readonly table?: string };

/** Refuses what DynamoDB would refuse as a name, and two names that differ. */
export function tableNameOf(options: NamedTable | undefined, field: 'table' | 'tableName'): string {
  const name = options?.table ?? options?.tableName;
  if (!isTableName(name)) throw new ValidationError(field, `the name of a DynamoDB table: ${TABLE_NAME}`, name);
  const other = options?.tableName ?? name;
  if (other !== name) throw new ValidationError(field, `the same name as table (${name})`, other);
  return name;
}
