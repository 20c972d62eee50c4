import { ValidationError } from '../../core/errors.js';

/** The table's name, under either of the two words for it. */
export type NamedTable =
  | { readonly table: string; readonly tableName?: string }
  | { readonly tableName: string; readonly table?: string };

/** Throws ValidationError without a name, and with two that differ. */
export function tableNameOf(options: NamedTable | undefined, field: 'table' | 'tableName'): string {
  const name = options?.table ?? options?.tableName;
  if (typeof name !== 'string' || name === '') throw new ValidationError(field, 'the name of a DynamoDB table', name);
  const other = options?.tableName ?? name;
  if (other !== name) throw new ValidationError(field, `the same name as table (${name})`, other);
  return name;
}
