import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isHeadgateError } from './errors.js';
import {
  buildBucketKey,
  buildLeaseId,
  buildOwnLimitsResource,
  checkEntityId,
  checkLimitName,
  checkNamespace,
  checkResource,
  parseBucketKey,
  parsePlainResource,
} from './identifiers.js';

const RUNS = { numRuns: 2_000 };

type Check = (value: unknown) => void;
const checks: Record<'entity' | 'resource' | 'limit' | 'namespace', Check> = {
  entity: (value) => checkEntityId(value),
  resource: (value) => checkResource(value),
  limit: (value) => checkLimitName(value),
  namespace: (value) => checkNamespace(value),
};

function isLegal(kind: keyof typeof checks, value: unknown): boolean {
  try {
    checks[kind](value);
    return true;
  } catch (error) {
    expect(isHeadgateError(error, 'input.invalid')).toBe(true);
    return false;
  }
}

const printable = Array.from({ length: 95 }, (_, code) => String.fromCodePoint(32 + code));
const letters = printable.filter((character) => /[A-Za-z]/.test(character));
const inNames = printable.filter((character) => /[A-Za-z0-9_.-]/.test(character));
const text = (characters: readonly string[], most: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...characters), minLength: 1, maxLength: most });
const without = (...refused: readonly string[]): readonly string[] => printable.filter((c) => !refused.includes(c));

const entityId = text(without(' ', '#'), 256).filter((id) => !id.startsWith('$'));
const resource = text(without(' ', '#', '~'), 128).filter((name) => !/^[_$]/.test(name));
const anything = fc.oneof(fc.string({ unit: 'binary', maxLength: 300 }), fc.string({ maxLength: 300 }), fc.anything());

const charactersOf = (value: string): readonly string[] => value.split('');

/** The rules of the design, character by character and without a regular expression. */
const rules: Record<keyof typeof checks, (value: string) => boolean> = {
  entity: (v) =>
    charactersOf(v).every((c) => c > ' ' && c <= '~' && c !== '#') && !v.startsWith('$') && v.length <= 256,
  resource: (v) =>
    charactersOf(v).every((c) => c > ' ' && c < '~' && c !== '#') &&
    !v.startsWith('$') &&
    !v.startsWith('_') &&
    v.length <= 128,
  limit: (v) =>
    charactersOf(v).every((c) => inNames.includes(c)) && letters.includes(v.charAt(0)) && v.length <= 64 && v !== 'wcu',
  namespace: (v) =>
    charactersOf(v).every((c) => inNames.includes(c)) && !['_', '.', '-'].includes(v.charAt(0)) && v.length <= 64,
};

test.each(Object.keys(checks) as (keyof typeof checks)[])(
  'a name of kind %s is legal exactly if the design says so',
  (kind) => {
    const near = fc.oneof(anything, entityId, resource, text(inNames, 70), text(printable, 5));
    fc.assert(
      fc.property(near, (value) => {
        const expected = typeof value === 'string' && value !== '' && rules[kind](value);
        expect(isLegal(kind, value)).toBe(expected);
      }),
      RUNS,
    );
  },
);

test('a name of any single character is legal exactly if the design says so', () => {
  for (let code = 0; code < 0x250; code++) {
    const character = String.fromCodePoint(code);
    for (const kind of Object.keys(checks) as (keyof typeof checks)[]) {
      expect([character, kind, isLegal(kind, character)]).toEqual([character, kind, rules[kind](character)]);
      expect(isLegal(kind, `a${character}`)).toBe(rules[kind](`a${character}`));
    }
  }
});

const legal: readonly (readonly [keyof typeof checks, readonly string[]])[] = [
  ['entity', ['a:b', 'a/b', 'auth0|123', 'a@b', 'a.b', 'a-b', 'a~b', '~', '_x', 'a$', '-', '"', 'x'.repeat(256)]],
  ['resource', ['arn:aws:bedrock:eu-west-1::m/x', 'a|b', 'a@b', 'a.b', 'a-b', 'a_', 'a$', '-', 'x'.repeat(128)]],
  ['limit', ['a', 'Z9', 'a_b', 'a.b', 'a-b', 'wcu2', 'WCU', 'constructor', `a${'x'.repeat(63)}`]],
  ['namespace', ['a', '0', '9-a', 'a_b', 'a.b', 'wcu', `0${'x'.repeat(63)}`]],
];

test.each(legal)('a name of kind %s is accepted at every legal boundary', (kind, names) => {
  expect(names.filter((name) => !isLegal(kind, name))).toEqual([]);
});

const illegal: readonly (readonly [keyof typeof checks, readonly unknown[]])[] = [
  ['entity', ['', ' ', 'a b', 'a#b', '#', '$a', '$', 'é', 'a\n', 'a\t', '\u007f', 'a\u0000', 'x'.repeat(257)]],
  ['resource', ['', ' ', 'a b', 'a#b', 'a~b', '~', '_a', '_default_', '$a', 'é', 'a\n', 'x'.repeat(129)]],
  ['limit', ['', 'wcu', '1a', '_a', '.a', '-a', 'a b', 'a:b', 'a/b', 'a#', 'a$', 'é', 'a\n', `a${'x'.repeat(64)}`]],
  ['namespace', ['', '_a', '.a', '-a', 'a b', 'a/b', 'a:b', 'a#', 'é', 'a\n', `0${'x'.repeat(64)}`]],
  ['entity', [undefined, null, 1, 1n, {}, [], ['a'], true, Symbol('a'), () => 'a', Object('a')]],
  ['resource', [undefined, null, 1, ['a'], Object('a')]],
  ['limit', [undefined, null, 1, ['a'], Object('a')]],
  ['namespace', [undefined, null, 1, ['a'], Object('a')]],
];

test.each(illegal)('a name of kind %s is refused just beyond every boundary', (kind, names) => {
  expect(names.filter((name) => isLegal(kind, name))).toEqual([]);
});

test('the error for an illegal name shows the expected and the given name', () => {
  expect(() => checkResource('a#b', 'level.resource')).toThrow(
    'Expected `level.resource` to be a resource name: 1 to 128 printable ASCII characters without "#", "~" or space, not starting with "_" or "$", got "a#b"',
  );
});

test('parsing a bucket key returns the names that it was built from', () => {
  fc.assert(
    fc.property(entityId, resource, (entity, of) => {
      expect(parseBucketKey(buildBucketKey(entity, of))).toEqual({ entityId: entity, resource: of });
    }),
    RUNS,
  );
});

test('bucket keys of distinct names are distinct, wherever the names could be divided', () => {
  const cut = text(['a', '/', ':', '|', '~'], 4);
  fc.assert(
    fc.property(cut, cut, cut, cut, (entityA, resourceA, entityB, resourceB) => {
      const same = entityA === entityB && resourceA === resourceB;
      expect(buildBucketKey(entityA, resourceA) === buildBucketKey(entityB, resourceB)).toBe(same);
    }),
    RUNS,
  );
});

test('the key part of per-call limits contains the plain resource, and is no legal resource name itself', () => {
  fc.assert(
    fc.property(resource, fc.string(), entityId, (of, limits, entity) => {
      const own = buildOwnLimitsResource(of, limits);
      expect(own).toHaveLength(of.length + 9);
      expect([parsePlainResource(own), parsePlainResource(of)]).toEqual([of, of]);
      expect(isLegal('resource', own)).toBe(false);
      expect(own).not.toContain('#');
      expect(parseBucketKey(buildBucketKey(entity, own))).toEqual({ entityId: entity, resource: own });
    }),
    RUNS,
  );
});

test('10,000 different lists of per-call limits have different keys', () => {
  const keys = Array.from({ length: 10_000 }, (_, n) => buildOwnLimitsResource('r', `rpm:${n}:${n}:60000`));
  expect(new Set(keys).size).toBe(10_000);
  expect(buildOwnLimitsResource('r', 'rpm:5')).toBe(buildOwnLimitsResource('r', 'rpm:5'));
});

const instant = fc.oneof(fc.integer({ min: 0, max: 2 ** 48 - 1 }), fc.integer({ min: 1.8e12, max: 1.8e12 + 200 }));
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

test('a lease id has 11 characters', () => {
  fc.assert(
    fc.property(instant, random, (nowMs, part) => {
      expect(buildLeaseId(nowMs, part)).toMatch(/^[\w~]{11}$/);
    }),
    RUNS,
  );
  expect(buildLeaseId(-5, 0)).toHaveLength(11);
});

test('lease ids sort by time when they are compared as text', () => {
  fc.assert(
    fc.property(instant, instant, random, random, (a, b, partA, partB) => {
      fc.pre(a !== b);
      expect(buildLeaseId(a, partA) < buildLeaseId(b, partB)).toBe(a < b);
    }),
    { numRuns: 5_000 },
  );
});

test('lease ids of consecutive milliseconds sort by time, for a whole minute', () => {
  const ids = Array.from({ length: 60_000 }, (_, ms) => buildLeaseId(1.8e12 + ms, 0));
  expect(ids).toEqual(ids.toSorted());
});

test('lease ids of the same instant differ by their random part', () => {
  const ids = Array.from({ length: 64 ** 3 }, (_, n) => buildLeaseId(1.8e12, n / 64 ** 3));
  expect(new Set(ids).size).toBe(64 ** 3);
});
