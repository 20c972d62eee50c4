import { createHash } from 'node:crypto';
import { ValidationError } from '../../core/errors.js';

const BASE = 'headgate';
const ENV = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38}[A-Za-z0-9])?$/;
const TABLE = /^[a-zA-Z][a-zA-Z0-9_.-]{2,254}$/;
/** CloudFormation allows 128 characters; the names of resources that contain the stack name need the rest. */
const MAX_STACK_CHARS = 100;

export interface StackNames {
  readonly stack: string;
  readonly table: string;
  /** The flag that selects this stack in a command; '' if none is needed. */
  readonly flag: string;
  /** null: no environment. */
  readonly env: string | null;
}

/**
 * The stack and the table of an environment have the same name: `headgate-pre`, or `headgate` without an environment.
 */
export function chooseNames(choice: { readonly env?: string; readonly table?: string }): StackNames {
  const { env, table } = choice;
  if (table !== undefined) {
    if (env !== undefined) throw new ValidationError('--table', 'left out when --env is given', table);
    return namesOfTable(table);
  }
  if (env === undefined) return { stack: BASE, table: BASE, flag: '', env: null };
  if (!ENV.test(env)) {
    throw new ValidationError('--env', '1 to 40 letters, digits or "-", not at the ends', env);
  }
  const name = `${BASE}-${env}`;
  return { stack: name, table: name, flag: ` --env ${env}`, env };
}

/** Table names may contain "_" and ".", stack names may not. A hash keeps the stacks of `a_b` and `a.b` apart. */
function namesOfTable(table: string): StackNames {
  const plain = table.replaceAll(/[^A-Za-z0-9-]/g, '-');
  const stack = plain === table ? table : `${plain}-${createHash('sha256').update(table).digest('hex').slice(0, 8)}`;
  if (!TABLE.test(table) || stack.length > MAX_STACK_CHARS) {
    const expected = `a letter, then 2 to ${MAX_STACK_CHARS - 1} letters, digits, "_", "." or "-": the stack has the name of the table, and DynamoDB requires at least 3 characters`;
    throw new ValidationError('--table', expected, table);
  }
  return { stack, table, flag: ` --table ${table}`, env: null };
}
