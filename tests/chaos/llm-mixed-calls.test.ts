import { expect, test } from 'vitest';
import { KEY } from '../support/llm/world.js';
import { runMixedCalls, wrongCharges } from '../support/llm/mixed-calls.js';

test.each([
  [1, 'exact'],
  [2, 'low'],
  [10, 'learned'],
] as const)(
  'of 1,000 calls of all clients, many of them streams, aborted or failing, none leaves a slot or a hold, and each costs what was served (seed %i, estimates are %s)',
  async (seed, estimates) => {
    const report = await runMixedCalls(1_000, seed, estimates);
    const { calls, slotsHeld, leases, granted, ended } = report;
    expect(wrongCharges(report)).toEqual([]);
    expect([report.errors, slotsHeld, leases, granted - ended]).toEqual([[], 0, 0, 0]);
    expect(report.upstreamTokens).toBe(calls.reduce((sum, { charged }) => sum + charged, 0));
    expect(report.output).toContain('"type":"provider-throttle"');
    expect(report.output).not.toContain(KEY);
    const count = (isSo: (call: (typeof calls)[number]) => boolean): number => calls.filter(isSo).length;
    const figures = {
      calls: calls.length,
      streams: count(({ stream }) => stream),
      abortedStreams: count(({ stream, intent }) => stream && intent === 'abort'),
      otherAborted: count(({ stream, intent }) => !stream && intent === 'abort'),
      abortedAt: new Set(
        calls.flatMap(({ stream, intent, abortAt }) => (stream && intent === 'abort' ? [abortAt] : [])),
      ).size,
      errors: count(({ intent }) => intent === 'error'),
      unbounded: count(({ isBounded }) => !isBounded),
      exact: count(
        ({ served, charged }) => served?.status === 200 && charged === served.inputTokens + served.outputTokens,
      ),
    };
    // The calls of a seed are always the same: 30 % streams, 10 % aborted streams and 5 % errors are aimed at.
    expect(figures.calls).toBe(1_000);
    expect(figures.streams).toBeGreaterThanOrEqual(285);
    expect(figures.abortedStreams).toBeGreaterThanOrEqual(97);
    expect(figures.abortedAt).toBeGreaterThanOrEqual(35);
    expect(figures.errors).toBeGreaterThanOrEqual(49);
    expect(figures.unbounded).toBe(estimates === 'learned' ? 372 : 0);
    console.log(`mixed calls, seed ${seed}: ${JSON.stringify(figures)}`);
  },
);
