import { ValidationError } from '../../../core/errors.js';

/** What DynamoDB accepts as the name of a table. */
export const TABLE_NAME = '3 to 255 letters, digits, "_", "." or "-"';

/** A name, or an ARN, which DynamoDB accepts instead. */
export function isTableName(text: unknown): text is string {
  return typeof text === 'string' && /^(?:[A-Za-z0-9_.-]{3,255}|arn:[A-Za-z0-9_.:/-]{1,1020})$/.test(text);
}

/** The table's name, under either of its two option names. */
export type NamedTable =
  | {
      /** The table's name. One of `table` and `tableName` is required. */
      readonly table: string;
      readonly tableName?: string;
    }
  | {
      /** The same as `table`. */
      readonly tableName: string;
      readonly table?: string;
    };

/** Throws for a name that DynamoDB would refuse, and for two different names. */
export function tableNameOf(options: NamedTable | undefined, field: 'table' | 'tableName'): string {
  const name = options?.table ?? options?.tableName;
  if (!isTableName(name)) throw new ValidationError(field, `the name of a DynamoDB table: ${TABLE_NAME}`, name);
  const other = options?.tableName ?? name;
  if (other !== name) throw new ValidationError(field, `the same name as table (${name})`, other);
  return name;
}
