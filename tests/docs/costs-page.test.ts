import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { itemSizes } from '../../bench/item-sizes.js';
import { encodeUsage } from '../../src/backends/dynamodb/table/records.js';
import type { Item } from '../../src/backends/dynamodb/client/transport.js';
import { USAGE_WINDOWS } from '../../src/core/usage/usage.js';
import { evaluate, type Values } from './arithmetic.js';

const PAGE = new URL('../../docs/operate/costs.md', import.meta.url);
const COST_TABLE = readFileSync(new URL('../../docs/backends/dynamodb.md', import.meta.url), 'utf8');

type Row = readonly string[];

function tableBetween(page: string, mark: string): string {
  const [, table = ''] = new RegExp(`<!-- ${mark} -->\n\n(.*?)\n\n<!-- /${mark} -->`, 's').exec(page) ?? [];
  return table;
}

/** The cells of the rows below the heading. */
function rowsOf(table: string): readonly Row[] {
  const lines = table.split('\n').slice(2);
  return lines.map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
}

function nameOf(cell: string | undefined): string {
  return /`(\w+)`/.exec(cell ?? '')?.[1] ?? '';
}

function numberOf(cell: string | undefined): number {
  return Number((cell ?? '').replaceAll(',', '') || Number.NaN);
}

/** Enough digits for accuracy, few enough to read. */
function show(value: number): string {
  const digits = value >= 100 || Number.isInteger(value) ? 0 : value >= 1 ? 2 : 3;
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** The rows with the right values: the value of each formula in every column. A formula may use the rows above it. */
function computed(rows: readonly Row[], columns: readonly Values[]): readonly Row[] {
  const known = columns.map((column) => ({ ...column }));
  return rows.map(([cell = '']) => {
    const { name = '', formula = '' } = /`(?<name>\w+) = (?<formula>[^`]+)`/.exec(cell)?.groups ?? {};
    const values = known.map((column) => (column[name] = evaluate(formula, column)));
    const shown = values.map(show);
    return [cell, ...(cell.startsWith('**') ? shown.map((value) => `**${value}**`) : shown)];
  });
}

function print(rows: readonly Row[]): string {
  return rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

const page = readFileSync(PAGE, 'utf8');
const inputs = rowsOf(tableBetween(page, 'inputs'));
const prices = Object.fromEntries(
  rowsOf(tableBetween(page, 'prices')).map(([name, , price]) => [nameOf(name), numberOf(price)]),
);
const columns = [2, 3, 4].map((place) => ({
  ...prices,
  ...Object.fromEntries(inputs.map((row) => [nameOf(row[0]), numberOf(row[place])])),
}));

test.each([
  ['results', columns],
  ['worker', [prices]],
])('every figure of the table %s is the value of its formula; RECORD_COSTS=1 rewrites them', (mark, known) => {
  const table = tableBetween(readFileSync(PAGE, 'utf8'), mark);
  expect(rowsOf(table).length).toBeGreaterThan(1);
  const right = print(computed(rowsOf(table), known));
  if (process.env['RECORD_COSTS'] === '1') {
    const heading = table.split('\n').slice(0, 2).join('\n');
    writeFileSync(PAGE, readFileSync(PAGE, 'utf8').replace(table, `${heading}\n${right}`));
  }
  expect(print(rowsOf(tableBetween(readFileSync(PAGE, 'utf8'), mark)))).toBe(right);
});

test('every input and every price is a number, and a formula uses it', () => {
  const all = columns.flatMap((column) => Object.entries(column));
  expect(all.filter(([name, value]) => name === '' || !Number.isFinite(value))).toEqual([]);
  const formulas = [...tableBetween(page, 'results').split('\n'), tableBetween(page, 'worker')].join('\n');
  expect(Object.keys(columns[0] ?? {}).filter((name) => !formulas.includes(name))).toEqual([]);
});

/** The bytes that DynamoDB adds to each item and index entry. */
const OVERHEAD = 100;

function bytesOf(item: Item, names: readonly string[]): number {
  return names.reduce((sum, name) => {
    const { S = '', N = '' } = item[name] ?? {};
    return sum + name.length + (N === '' ? S.length : Math.ceil(N.replace(/\D/g, '').length / 2) + 1);
  }, OVERHEAD);
}

/** An index that projects only keys has its own two keys and those of the table. */
function storedBytes(item: Item): number {
  const indexes = ['GSI1', 'GSI2', 'GSI3', 'GSI4'].filter((index) => `${index}PK` in item);
  const entries = indexes.map((index) => bytesOf(item, ['PK', 'SK', `${index}PK`, `${index}SK`]));
  return entries.reduce((sum, bytes) => sum + bytes, bytesOf(item, Object.keys(item)));
}

test('the sizes on the page are those of the items that the codec writes', () => {
  const size = itemSizes().find(({ limits, holders, names }) => limits === 2 && holders === 0 && names[0] === 36);
  const usage = encodeUsage('x7Kp2mQ9_aB', {
    entityId: 'e'.repeat(36),
    resource: 'r'.repeat(20),
    window: 'hourly',
    startMs: 1_800_000_000_000,
    consumedMilli: new Map([
      ['lim00', 123_456_789],
      ['lim01', 123_456_789],
    ]),
    acquires: 1_234,
    expired: 0,
  });
  const counted = { q_0: { S: `2027-01-01T00:00:00.000/${'0'.repeat(40)}` } };
  const expected = { bucketBytes: storedBytes(size?.item ?? {}), usageBytes: storedBytes({ ...usage, ...counted }) };
  for (const column of columns) expect(column).toMatchObject(expected);
});

test('the formulas use the units of the cost table of the DynamoDB page', () => {
  expect(COST_TABLE).toContain('| 2.5, + 1.5 per parent | 4, 5 with a holder, once |');
  expect(tableBetween(page, 'results')).toContain('(2.5 + 1.5 * (levels - 1))');
  expect(tableBetween(page, 'results')).toContain(`${USAGE_WINDOWS.length} * (takes + corrected)`);
  // 3 batches of 100 changes of one bucket: 9 units, and 1, 1 and 2 for the new records.
  const busy = { takes: 300, corrected: 0, itemKb: 1, perBatch: 100, hourRecords: 1, dayRecords: 1, monthRecords: 1 };
  const [, formula = ''] = /`usage = ([^`]+)`/.exec(page) ?? [];
  expect((evaluate(formula, busy) / 300).toFixed(3)).toBe('0.043');
});
