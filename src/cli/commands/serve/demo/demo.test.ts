import { expect, test } from 'vitest';
import { RateLimiter } from '../../../../limiter/rate-limiter.js';
import type { Style } from '../../../terminal/terminal.js';
import { prepareDemo, runDemo } from './demo.js';
import { countLines } from './screen.js';

const same = (text: string): string => text;

test('a drawing after the window became narrower erases the lines that the last one takes now', async () => {
  await using limiter = await RateLimiter.open('memory:');
  await prepareDemo(limiter, true);
  const drawings: string[] = [];
  const terminal = {
    get style() {
      const width = drawings.length === 0 ? 200 : 60;
      return { bold: same, dim: same, green: same, red: same, yellow: same, width } as unknown as Style;
    },
    out: (text: string) => void drawings.push(text),
  };
  const end = new AbortController();
  const running = runDemo(limiter, terminal, end.signal, false);
  await expect.poll(() => drawings.length, { timeout: 10_000 }).toBeGreaterThan(1);
  end.abort();
  await running;
  const [first = '', second = ''] = drawings;
  const lines = countLines(first.slice(0, -1), 60);
  expect(lines).toBeGreaterThan(first.slice(0, -1).split('\n').length);
  expect(second.startsWith(`\u001B[${lines}A\u001B[J`)).toBe(true);
});
