import { expect, test } from 'vitest';
import { drawFields, drawTable } from './table.js';

test('a table aligns text to the left and numbers, with their title, to the right', () => {
  const rows = [
    ['rpm', 7],
    ['tokens', 1200],
  ];
  expect(drawTable(['limit', 'left'], rows)).toBe('limit    left\nrpm         7\ntokens  1,200');
});

test('paint takes no width', () => {
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

test('a table without titles has no line for them', () => {
  expect(drawTable(['', ''], [['a', 'b']])).toBe('a  b');
});

test('a name cannot reach the terminal as a command', () => {
  expect(drawTable(['name'], [['\u001B[2Jgone\nnext']])).toBe('name\n\\u001b[2Jgone\\u000anext');
});

test('a table may be as long as a store is large', () => {
  const rows = Array.from({ length: 200_000 }, (_, at) => [`user-${at}`]);
  expect(drawTable(['ENTITY'], rows).split('\n')).toHaveLength(200_001);
});

test('fields stand under each other', () => {
  expect(
    drawFields([
      ['id', 'user-1'],
      ['version', 1200],
      ['name', ''],
    ]),
  ).toBe('id       user-1\nversion  1,200\nname');
});
