import { expect, test } from 'vitest';
import type { LimitStatus } from '../../../../core/bucket/decide.js';
import { Limit } from '../../../../core/limit.js';
import type { Style } from '../../../terminal/terminal.js';
import { countLines, drawScreen } from './screen.js';

const same = (text: string): string => text;
const styleOf = (width: number): Style =>
  ({ bold: same, dim: same, green: same, red: same, yellow: same, width }) as unknown as Style;

function statusOf(limit: Limit): LimitStatus {
  const state = { available: 0, requested: 0, exceeded: false, retryAfterMs: 0 };
  return { entityId: 'acme/mobile', resource: 'gpt-4', limit, ...state };
}

const [rpm, tpm] = [statusOf(Limit.perMinute('rpm', 300)), statusOf(Limit.perMinute('tpm', 90_000))];
const limits = [rpm, tpm, statusOf(Limit.concurrent('slots', 3))];
const entities = [{ entityId: 'acme/mobile', granted: 1_234_567, denied: 1_234_567, perSecond: 99.9, limits }];
const state = { seconds: 5, entities, shared: [rpm, tpm], lastDenial: 'acme/mobile by slots of acme/mobile' };

test.each([80, 100, 120, 300])('a screen of %i columns shows each row of the demo in one line', (width) => {
  const text = drawScreen(state, styleOf(width));
  expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(width);
  expect(countLines(text, width)).toBe(5);
});

test('a line that is wider than the screen counts as several lines, and codes of colours have no width', () => {
  expect(countLines(`\u001B[1m${'x'.repeat(41)}\u001B[22m\n\nshort`, 20)).toBe(5);
});
