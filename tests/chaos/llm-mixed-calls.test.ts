import { expect, test } from 'vitest';
import { KEY } from '../support/llm/clients.js';
import { runMixedCalls, wrongCharges } from '../support/llm/mixed-calls.js';

test.each([
  [1, 'exact'],
  [2, 'low'],
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
      aborted: count(({ intent }) => intent === 'abort'),
      errors: count(({ intent }) => intent === 'error'),
      exact: count(
        ({ served, charged }) => served?.status === 200 && charged === served.inputTokens + served.outputTokens,
      ),
    };
    console.log(`mixed calls, seed ${seed}: ${JSON.stringify(figures)}`);
  },
);
