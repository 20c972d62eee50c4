import fc from 'fast-check';
import { expect, test } from 'vitest';
import { JsonMembers } from './json-members.js';

const WANTED = {
  paths: new Set(['usage', 'a.usage', 'type']),
  counted: new Set(['text']),
  countedWhole: new Set(['call']),
  endings: new Set(['reason']),
};

/** Feeds the text in pieces of the given lengths, which are used in turn. */
function readIn(text: string, lengths: readonly number[]): JsonMembers {
  const members = new JsonMembers(WANTED);
  for (let at = 0, piece = 0; at < text.length; piece++) {
    const length = lengths[piece % lengths.length] ?? text.length;
    members.write(text.slice(at, at + length));
    at += length;
  }
  return members;
}

const lengths = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 });
const names = fc.constantFrom('usage', 'a', 'type', 'text', 'b', 'us"age', '\\');
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.oneof(fc.string(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null)),
    fc.array(tie('tree'), { maxLength: 3 }),
    fc.dictionary(names, tie('tree'), { maxKeys: 4, noNullPrototype: true }),
  ),
}));
const objects = fc.dictionary(names, tree, { maxKeys: 5, noNullPrototype: true });

test('the members of a JSON text are those that JSON.parse finds, however the text is divided', () => {
  fc.assert(
    fc.property(objects, lengths, fc.constantFrom(0, 2), (value, pieces, indent) => {
      const members = readIn(JSON.stringify(value, null, indent), pieces);
      const plain = JSON.parse(JSON.stringify(value)) as Record<string, unknown>;
      const inner = plain['a'];
      const isObject = typeof inner === 'object' && inner !== null && !Array.isArray(inner);
      expect(members.isBroken).toBe(false);
      expect(members.value('usage')).toEqual(plain['usage']);
      expect(members.value('type')).toEqual(plain['type']);
      expect(members.value('a.usage')).toEqual(isObject ? (inner as Record<string, unknown>)['usage'] : undefined);
    }),
  );
});

test('the items of a list are read one after the other, and the last one counts', () => {
  expect(readIn('[{"usage":1},\n{"usage":{"n":[2]}},{"type":"x"}]', [3]).value('usage')).toEqual({ n: [2] });
});

test('the text of counted members is counted at every depth', () => {
  expect(readIn('{"text":"abc","b":[{"text":"de","x":"no"}]}', [2]).characters).toBe(5);
});

test('the names and the texts of a member that is counted whole are counted, and those beside it are not', () => {
  const members = readIn('{"id":"no","call":{"name":"ab","args":{"city":"cd","list":["ef"]}},"next":"no"}', [3]);
  expect(members.characters).toBe('nameabargscitycdlistef'.length);
});

test('the bytes of what is counted are at least those of the text in UTF-8, however it is divided and escaped', () => {
  const escape = (text: string): string =>
    text.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), lengths, (text, pieces) => {
      const json = JSON.stringify({ text });
      expect(readIn(json, pieces).bytes).toBeGreaterThanOrEqual(Buffer.byteLength(text));
      expect(readIn(json, [json.length]).bytes).toBe(Buffer.byteLength(json.slice('{"text":"'.length, -2)));
      expect(readIn(escape(json), pieces).bytes).toBeGreaterThanOrEqual(Buffer.byteLength(text));
    }),
  );
});

test('a member that says that an answer has ended is noticed at every depth, if it has a text', () => {
  expect(readIn('{"b":[{"reason":null,"x":"reason"}]}', [2]).hasEnding).toBe(false);
  expect(readIn('{"b":[{"reason":"stop"}]}', [2]).hasEnding).toBe(true);
});

test('a member that is not complete has no value', () => {
  expect(readIn('{"usage":{"n":1}', [4]).value('usage')).toBe(undefined);
});

test('a value of many megabytes is not kept', () => {
  const members = readIn(`{"usage":"${'x'.repeat(3_000_000)}","type":"t"}`, [65_000]);
  expect([members.value('usage'), members.value('type')]).toEqual([undefined, 't']);
});

test('a text that is no JSON never throws, and keeps the members before the error', () => {
  expect(readIn('{"usage":7,"type":[}', [1]).value('usage')).toBe(7);
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('{', '}', '[', ']', '"', ',', ':', '\\', 'a', '1', ' ') }),
      lengths,
      (text, pieces) => {
        readIn(text, pieces);
      },
    ),
  );
});
