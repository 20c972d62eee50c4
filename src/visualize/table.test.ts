import fc from 'fast-check';
import { expect, test } from 'vitest';
import { drawFields, drawTable } from './table.js';

test('a table aligns text to the left and numbers, with their title, to the right', () => {
  const rows = [
    ['rpm', 7],
    ['tokens', 1200],
  ];
  expect(drawTable(['limit', 'left'], rows)).toBe('limit    left\nrpm         7\ntokens  1,200');
});

test('the escape codes of paint do not count for the width of a column', () => {
  const red = (text: string) => `\u001B[31m${text}\u001B[39m`;
  expect(
    drawTable(
      ['a', 'b'],
      [
        [{ value: 'x', paint: red }, 'y'],
        ['long', 'z'],
      ],
    ),
  ).toBe('a     b\n\u001B[31mx\u001B[39m     y\nlong  z');
});

test('a table without titles has no title line', () => {
  expect(drawTable(['', ''], [['a', 'b']])).toBe('a  b');
});

test('a table escapes control characters in names', () => {
  expect(drawTable(['name'], [['\u001B[2Jgone\nnext']])).toBe('name\n\\u001b[2Jgone\\u000anext');
});

test('a table can have hundreds of thousands of rows', () => {
  const rows = Array.from({ length: 200_000 }, (_, at) => [`user-${at}`]);
  expect(drawTable(['ENTITY'], rows).split('\n')).toHaveLength(200_001);
});

test('drawFields aligns the values of all fields', () => {
  expect(
    drawFields([
      ['id', 'user-1'],
      ['version', 1200],
      ['name', ''],
    ]),
  ).toBe('id       user-1\nversion  1,200\nname');
});

test('a table that is too wide for the screen wraps its widest column', () => {
  const rows = [['user-1', 'rpm:100/min tpm:10000/min slots:4/concurrent', 7]];
  expect(drawTable(['ENTITY', 'LIMITS', 'LEFT'], rows, 40).split('\n')).toEqual([
    'ENTITY  LIMITS                      LEFT',
    'user-1  rpm:100/min tpm:10000/min      7',
    '        slots:4/concurrent',
  ]);
});

test('every line of a wrapped cell is painted', () => {
  const mark = (text: string) => `<${text}>`;
  expect(drawTable([''], [[{ value: 'aaaaaaaaaa bbbbbbbbbb', paint: mark }]], 12)).toBe('<aaaaaaaaaa>\n<bbbbbbbbbb>');
});

test('columns of numbers and narrow columns keep their width, even if the table does not fit', () => {
  const rows = [['a'.repeat(30), 123_456_789_012]];
  expect(drawTable(['N', 'COUNT'], rows, 5).split('\n')).toEqual([
    'N                     COUNT',
    ...Array.from({ length: 3 }, (_, at) => (at === 0 ? `${'a'.repeat(10)}  123,456,789,012` : 'a'.repeat(10))),
  ]);
});

test('a table fits every screen that its numbers and ten characters of each text leave room for, and loses nothing', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '-'), maxLength: 60 });
  const table = fc
    .integer({ min: 1, max: 4 })
    .chain((columns) =>
      fc.array(fc.array(word, { minLength: columns, maxLength: columns }), { minLength: 1, maxLength: 5 }),
    );
  fc.assert(
    fc.property(table, fc.integer({ min: 46, max: 200 }), (rows, screen) => {
      const header = (rows[0] ?? []).map((_, at) => `C${at}`);
      const lines = drawTable(header, rows, screen).split('\n');
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(screen);
      const letters = (text: string) => Array.from(text.replaceAll(/\s/g, '')).toSorted().join('');
      expect(letters(lines.join(''))).toBe(letters([...header, ...rows.flat()].join('')));
    }),
  );
});
