import { expect, test } from 'vitest';
import { drawTable } from '../../visualize/table.js';
import { createTerminal } from './terminal.js';

function widthOf(stdout: object): number | undefined {
  const parts = { env: {}, stdin: {}, stdout, stderr: {} } as unknown as NodeJS.Process;
  return createTerminal(parts).style.width;
}

test('the style of a terminal has its width', () => {
  const width = widthOf({ isTTY: true, columns: 40 });
  expect(width).toBe(40);
  const lines = drawTable(['A', 'B'], [['x'.repeat(60), 'y'.repeat(60)]], width).split('\n');
  expect(Math.max(...lines.map(({ length }) => length))).toBe(40);
});

test('the style of a pipe has no width, so that each record stays on one line', () => {
  expect(widthOf({ columns: 40 })).toBeUndefined();
  expect(widthOf({ isTTY: true, columns: 0 })).toBeUndefined();
});
