import { createHash } from 'node:crypto';
import { ValidationError } from '../../core/errors.js';

const BASE = 'headgate';
const ENV = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38}[A-Za-z0-9])?$/;
const TABLE = /^[a-zA-Z][a-zA-Z0-9_.-]{2,254}$/;
/** CloudFormation allows 128; names of resources that are made of it need some of them. */
const LONGEST_STACK = 100;

export interface StackNames {
  readonly stack: string;
  readonly table: string;
  /** What to add to a command so that it means this stack; '' if nothing. */
  readonly flag: string;
  /** null: it has none. */
  readonly env: string | null;
}

/** Stack and table of an environment have one name: `headgate-pre`, or `headgate` without an environment. */
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

/** Tables may have "_" and "." in their names, stacks may not: `a_b` and `a.b` must not share one, so they get a mark. */
function namesOfTable(table: string): StackNames {
  const plain = table.replaceAll(/[^A-Za-z0-9-]/g, '-');
  const stack = plain === table ? table : `${plain}-${createHash('sha256').update(table).digest('hex').slice(0, 8)}`;
  if (!TABLE.test(table) || stack.length > LONGEST_STACK) {
    const expected = `a letter, then 2 to ${LONGEST_STACK - 1} letters, digits, "_", "." or "-": the stack has the name of the table, and DynamoDB takes none under 3 characters`;
    throw new ValidationError('--table', expected, table);
  }
  return { stack, table, flag: ` --table ${table}`, env: null };
}
