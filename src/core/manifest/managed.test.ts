import fc from 'fast-check';
import { expect, test } from 'vitest';
import { buildManagedKey, type ManagedTarget, parseManagedKey } from './managed.js';

/** Legal by the rules of `core/identifiers.ts`. */
const entityId = fc.stringMatching(/^[!-"%-~][!-"$-~]{0,20}$/);
const resource = fc.stringMatching(/^[!-"%-^a-}][!-"$-}]{0,20}$/);

const target: fc.Arbitrary<ManagedTarget> = fc.oneof(
  fc.record({ kind: fc.constant('entity' as const), entityId, resource }),
  fc.record({ kind: fc.constant('entity_default' as const), entityId }),
  fc.record({ kind: fc.constant('record' as const), entityId }),
  fc.record({ kind: fc.constant('resource' as const), resource }),
  fc.constant({ kind: 'system' as const }),
);

test('parsing the key of a managed object returns the object that it was built from', () => {
  fc.assert(
    fc.property(target, (given) => {
      expect(parseManagedKey(buildManagedKey(given))).toEqual(given);
    }),
  );
});

test('different managed objects have different keys', () => {
  fc.assert(
    fc.property(target, target, (a, b) => {
      const same = JSON.stringify(a) === JSON.stringify(b);
      expect(buildManagedKey(a) === buildManagedKey(b)).toBe(same);
    }),
  );
});

test.each([
  '',
  'systems',
  'system#a',
  'resource',
  'resource#',
  'resource#a#b',
  'entity#a',
  'entity#a#',
  'entity#a#b#c',
  'entity_default#a#b',
  'record',
  'record#',
  'record#a#b',
  'webhook#a',
])('%j is not the key of any managed object', (key) => {
  expect(parseManagedKey(key)).toBeUndefined();
});
