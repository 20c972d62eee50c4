import fc from 'fast-check';
import { expect, test } from 'vitest';
import { portableParts } from '../../../../tests/support/features/portable-part.js';
import type { Amount, Holder } from '../../../core/bucket/decide.js';
import { decodeHolder, encodeHolder } from './stored-holder.js';

const amounts: fc.Arbitrary<readonly Amount[]> = fc.uniqueArray(
  fc.record({ name: fc.constantFrom('rpm', 'tpm', 'o-1', 'a.b_c'), milli: fc.nat() }),
  { selector: ({ name }) => name, maxLength: 3 },
);
const operationId = fc.stringMatching(/^[0-9A-Za-z_.~-]{1,64}$/);

test('a portable holder is decoded as it was encoded, in every state and with any caller', () => {
  const portable = portableParts(amounts, operationId);
  const caller = fc.option(fc.string());
  fc.assert(
    fc.property(portable, amounts, caller, fc.boolean(), fc.nat(), (part, slots, by, refunds, expiresAtMs) => {
      const rates = refunds ? part.taken : null;
      const holder: Holder = { expiresAtMs, acquiredAtMs: 0, slots, rates, caller: by, portable: part };
      const { text, ...decoded } = decodeHolder('00000000abc', encodeHolder(holder));
      expect(decoded).toEqual(holder);
      expect(encodeHolder(decoded)).toBe(text);
    }),
  );
});

test('a holder that is not portable has the text that it always had', () => {
  const plain = {
    expiresAtMs: 5,
    acquiredAtMs: 0,
    slots: [{ name: 'slots', milli: 1_000 }],
    rates: null,
    caller: null,
  };
  expect(encodeHolder(plain)).toBe('5|slots=1000');
  expect(encodeHolder({ ...plain, rates: [{ name: 'o', milli: 2 }], caller: 'c-;' })).toBe('5|slots=1000|+o=2|c-;');
  expect(decodeHolder('00000000abd', '5|slots=1000||c-;')).not.toHaveProperty('portable');
});
