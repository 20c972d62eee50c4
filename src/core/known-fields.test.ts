import { expect, test } from 'vitest';
import { ValidationError } from './errors.js';
import { checkKnownFields } from './known-fields.js';

const KNOWN = new Set(['entityId', 'resource', 'consume', 'limits', 'wait', 'leaseTtlMs']);

test('an object with known fields only is accepted', () => {
  expect(() => checkKnownFields('request', { entityId: 'a', wait: undefined }, KNOWN)).not.toThrow();
});

test.each([
  ['waitMs', 'wait'],
  ['limit', 'limits'],
  ['entityID', 'entityId'],
  ['resorce', 'resource'],
  ['leaseTtl', 'leaseTtlMs'],
])('the unknown field %s is refused and %s is suggested', (field, suggestion) => {
  const check = (): void => checkKnownFields('request', { [field]: 1 }, KNOWN);
  expect(check).toThrow(ValidationError);
  expect(check).toThrow(`did you mean ${suggestion}?`);
});

test('an unknown field that resembles no known one is refused without a suggestion', () => {
  const check = (): void => checkKnownFields('request', { colour: 1 }, KNOWN);
  expect(check).toThrow('`request.colour`');
  expect(check).not.toThrow('did you mean');
});
