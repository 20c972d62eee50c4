import * as v from 'valibot';
import { ValidationError } from '../../core/errors.js';

/** The value as the schema returns it. Throws with one sentence about the first problem. */
export function parse(part: string, schema: v.GenericSchema, value: unknown): unknown {
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  const [issue] = result.issues;
  const path = v.getDotPath(issue);
  const field = path === null ? part : `${part}.${path}`;
  throw new ValidationError(field, describeExpected(issue), issue.input, result.issues.length - 1);
}

/** The words for what valibot names by a type. */
const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  Object: 'an object',
  Array: 'a list',
  never: 'a field of this operation',
};

function describeExpected(issue: v.BaseIssue<unknown>): string {
  const { type, kind, expected, requirement } = issue as v.BaseIssue<unknown> & { readonly requirement?: unknown };
  switch (type) {
    case 'safe_integer':
      return 'a whole number';
    case 'iso_timestamp':
      return 'an instant such as 2026-01-31T12:00:00.000Z';
    case 'min_length':
      return `at least ${String(requirement)} long`;
    case 'max_length':
      return `at most ${String(requirement)} long`;
    case 'min_value':
      return `at least ${String(requirement)}`;
    case 'max_value':
      return `at most ${String(requirement)}`;
    case 'regex':
      return `text that matches ${String(requirement)}`;
  }
  // An object whose field is missing: valibot expects the name of the field.
  if (kind === 'schema' && type.endsWith('object') && expected?.startsWith('"') === true) return 'given';
  return TYPES[expected ?? ''] ?? expected ?? issue.message;
}
