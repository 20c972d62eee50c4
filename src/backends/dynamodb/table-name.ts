import { ValidationError } from '../../core/errors.js';

/** What DynamoDB takes as the name of a table. */
export const TABLE_NAME = '3 to 255 letters, digits, "_", "." or "-"';

/** A name, or an ARN, which DynamoDB takes in its place. */
export function isTableName(text: unknown): text is string {
  return typeof text === 'string' && /^(?:[A-Za-z0-9_.-]{3,255}|arn:[A-Za-z0-9_.:/-]{1,1020})$/.test(text);
}

/** Refuses what DynamoDB would refuse, with the reason. */
export function checkTableName(field: string, name: unknown): asserts name is string {
  if (!isTableName(name)) throw new ValidationError(field, `the name of a DynamoDB table: ${TABLE_NAME}`, name);
}
