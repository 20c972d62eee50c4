import { expect, test, vi } from 'vitest';
import { KEY } from '../../support/llm/world.js';
import { runMixedCalls, wrongCharges } from '../../support/llm/mixed-calls.js';

test.each([
  [7, 'exact'],
  [8, 'low'],
  [9, 'learned'],
] as const)(
  'of 64 calls of all clients, some aborted and some failing, none leaves a slot or a hold, and each costs what was served (seed %i, estimates are %s)',
  async (seed, estimates) => {
    const printed: string[] = [];
    const note = (chunk: unknown): boolean => printed.push(String(chunk)) > 0;
    const spies = [process.stdout, process.stderr].map((stream) => vi.spyOn(stream, 'write').mockImplementation(note));
    const report = await runMixedCalls(64, seed, estimates).finally(() => spies.map((spy) => spy.mockRestore()));
    expect(wrongCharges(report)).toEqual([]);
    expect(report.errors).toEqual([]);
    expect([report.slotsHeld, report.leases, report.granted - report.ended]).toEqual([0, 0, 0]);
    expect(report.upstreamTokens).toBe(report.calls.reduce((sum, { charged }) => sum + charged, 0));
    expect(`${report.output}${printed.join('')}`).not.toContain(KEY);
    expect(report.output).toContain('headgate_decisions_total');
  },
);
