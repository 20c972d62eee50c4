import pc from 'picocolors';
import { expect, test } from 'vitest';
import { renderPlot } from './usage-plot.js';
import type { UsagePlotShape } from './usage-shapes.js';

const PLAIN = pc.createColors(false);

function plotOf(series: Readonly<Record<string, readonly number[]>>): UsagePlotShape {
  return {
    entityId: null,
    resource: 'gpt-4',
    window: 'daily',
    series: Object.entries(series).map(([name, values]) => ({
      name,
      points: values.map((value, at) => ({ windowStart: `2027-01-0${at + 1}T00:00:00.000Z`, value })),
    })),
  };
}

test('a plot draws the limits that have data, and names those that have none', () => {
  const text = renderPlot(plotOf({ rpm: [0, 0], tpm: [0, 500], acquires: [0, 2] }), false, PLAIN);
  expect(text).not.toContain('rpm of gpt-4');
  expect(text).toMatch(/^tpm of gpt-4[^]*acquires of gpt-4[^]*\n\nNo usage of rpm in this time\.$/);
});

test('a plot in which every limit has data names no empty limits', () => {
  expect(renderPlot(plotOf({ tpm: [1, 2] }), false, PLAIN)).not.toContain('No usage of');
});

test('a plot without data is one sentence', () => {
  expect(renderPlot(plotOf({ rpm: [0] }), false, PLAIN)).toBe('No usage of gpt-4 by all entities in this time.');
});
