import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { proseOf, ROOT, userPages } from '../support/docs/code-blocks.js';

/** The cells of the rows of tables. */
function rowsOf(text: string): readonly (readonly string[])[] {
  return Array.from(text.matchAll(/^ *\| (.*) \|$/gm), ([, row = '']) => row.split(' | ').map((cell) => cell.trim()));
}

/** The HTTP status and the exit code of each error, by the generated table. */
const CODES = new Map(
  rowsOf(readFileSync(join(ROOT, 'docs/reference/errors.md'), 'utf8')).flatMap(([name = '', http = '', exit = '']) =>
    /^`[\w.-]+`$/.test(name) && /^\d+$/.test(http) ? [[name, [http, exit]] as const] : [],
  ),
);

/** Rows that name the code of one error and have other numbers than its status and exit code. */
function wrongRows(text: string): readonly string[] {
  return rowsOf(text).flatMap((cells) => {
    const [code, second] = cells.filter((cell) => CODES.has(cell));
    const numbers = cells.filter((cell) => /^\d+$/.test(cell));
    const isRight =
      code === undefined || second !== undefined || numbers.every((one) => CODES.get(code)?.includes(one));
    return isRight ? [] : [cells.join(' | ')];
  });
}

test('a table that names the status or the exit code of an error has those of the code', () => {
  expect(userPages().flatMap((page) => wrongRows(proseOf(page)))).toEqual([]);
});

test('a wrong status and a wrong exit code are found', () => {
  expect(CODES.size).toBeGreaterThan(15);
  expect(wrongRows('| `lease.closed` | LeaseClosed | 409 | 5 |')).toEqual([]);
  expect(wrongRows('| `lease.closed` | LeaseClosed | 410 | 5 |')).toHaveLength(1);
  expect(wrongRows('| forever | null | `entity.paused` | 403 | 11 |')).toHaveLength(1);
});
