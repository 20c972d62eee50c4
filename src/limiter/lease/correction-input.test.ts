import { expect, test } from 'vitest';
import type { LimitKind } from '../../core/limit-kind.js';
import { readDeltas, readOperationId, readOptionalTotals, readTotals } from './correction-input.js';

/** Limits of a lease, of which some are known only after the config was read again. */
function limitsOf(known: Record<string, LimitKind>, added: Record<string, LimitKind> = {}) {
  let kinds = known;
  const limits = { reads: 0, kindOf: (name: string) => kinds[name], learnLimits };
  async function learnLimits(): Promise<void> {
    limits.reads += 1;
    kinds = { ...known, ...added };
  }
  return limits;
}

test('corrections of known limits are read synchronously, so that they keep the order of their calls', () => {
  const limits = limitsOf({ rpm: 'rate' });
  expect(readDeltas(limits, { rpm: -1 })).toEqual([{ name: 'rpm', milli: -1_000 }]);
  expect(readTotals(limits, { rpm: 2 })).toEqual([{ name: 'rpm', milli: 2_000 }]);
  expect(readOptionalTotals(limits, undefined)).toEqual([]);
  expect(limits.reads).toBe(0);
});

test('a correction of a limit that was added after the grant is read after the config', async () => {
  const limits = limitsOf({ rpm: 'rate' }, { tpm: 'rate' });
  expect(await readTotals(limits, { rpm: 1, tpm: 2 })).toEqual([
    { name: 'rpm', milli: 1_000 },
    { name: 'tpm', milli: 2_000 },
  ]);
  expect(limits.reads).toBe(1);
});

test('a correction of a limit that does not exist after the config was read again is refused', async () => {
  const limits = limitsOf({ rpm: 'rate' });
  await expect(readDeltas(limits, { tpm: 1 })).rejects.toMatchObject({ field: 'deltas.tpm' });
});

test('a correction of slots is refused before anything is read', () => {
  const limits = limitsOf({ slots: 'concurrent' });
  expect(() => readDeltas(limits, { slots: -1 })).toThrow(/release\(\)/);
  expect(limits.reads).toBe(0);
});

test.each([null, undefined])(
  'an adjust with the operationId %s has no id, also if no id would be kept',
  (operationId) => {
    expect(readOperationId({ operationId }, false)).toBeNull();
  },
);

test('an operationId that would not be kept is refused, and so is one that is no short text', () => {
  expect(readOperationId({ operationId: 'a-1' }, true)).toBe('a-1');
  expect(() => readOperationId({ operationId: 'a-1' }, false)).toThrow(/portable/);
  for (const operationId of ['', 'a b', 'a'.repeat(65), 7]) {
    expect(() => readOperationId({ operationId }, true)).toThrow(/1 to 64/);
  }
});
