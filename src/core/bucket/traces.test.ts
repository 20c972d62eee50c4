import { expect, test } from 'vitest';
import type { Holder } from './decide.js';
import { isCrowded, MAX_TRACES, tracesToDrop } from './traces.js';

function holderOf(state: 'open' | 'committed', expiresAtMs: number): Holder {
  const portable = { state, taken: [], adjusts: [] };
  return { expiresAtMs, acquiredAtMs: 0, slots: [], rates: null, caller: null, portable };
}

function holdersOf(state: 'open' | 'committed', count: number): [string, Holder][] {
  return Array.from({ length: count }, (_, at) => [`${state}-${at}`, holderOf(state, 1_000 - at)]);
}

test('a bucket with 1,000 open leases is crowded, one with 999 and any number of traces is not', () => {
  const portable = holderOf('open', 1);
  const { portable: _portable, ...plain } = portable;
  const [slots, noSlots] = [2_000, 0].map((milli) => ({ ...plain, slots: [{ name: 'slots', milli }] }));
  const [roomy, full] = [[...holdersOf('open', 999), ...holdersOf('committed', 500)], holdersOf('open', 1_000)];
  for (const holder of [portable, plain, slots!, noSlots!]) expect(isCrowded(new Map(roomy), holder)).toBe(false);
  expect([portable, plain, slots!, noSlots!].map((holder) => isCrowded(new Map(full), holder))).toEqual([
    true,
    true,
    false,
    true,
  ]);
});

test('beyond 100 traces those that expire first are dropped down to 50, and no open lease', () => {
  const open = holdersOf('open', 200);
  expect(tracesToDrop(new Map([...open, ...holdersOf('committed', MAX_TRACES)]))).toEqual([]);
  const dropped = tracesToDrop(new Map([...open, ...holdersOf('committed', MAX_TRACES + 1)]));
  expect(dropped).toEqual(Array.from({ length: 51 }, (_, at) => `committed-${MAX_TRACES - at}`));
});
