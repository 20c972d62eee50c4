import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const PAGE = readFileSync(new URL('../../docs/guide/concepts.md', import.meta.url), 'utf8');
const QUOTA = 500;

test('every row of the numbers against a vendor window stays within the quota, and one call more a minute does not', () => {
  const [, table = ''] = /<!-- numbers -->\n\n([^]*?)\n\n<!-- \/numbers -->/.exec(PAGE) ?? [];
  const rows = table.split('\n').slice(2);
  expect(rows.length).toBeGreaterThan(2);
  for (const row of rows) {
    const cells = row.split('|').slice(1, -1);
    const [burst = 0, embedded = 0, dynamodb = 0, most, mostOnDynamodb] = cells.map(Number);
    const fullest = (rate: number, seconds: number): number => burst + (rate * seconds) / 60;
    expect([fullest(embedded, 60), Number(fullest(dynamodb, 62).toFixed(1))]).toEqual([most, mostOnDynamodb]);
    expect(fullest(dynamodb, 62)).toBeLessThanOrEqual(QUOTA);
    expect(fullest(dynamodb + 1, 62)).toBeGreaterThan(QUOTA);
  }
});
