import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseOutput } from './lean-transport.js';

/** What a parser does with a text: its value, or that it throws. */
const readBy = (parse: (text: string) => unknown, text: string): unknown => {
  try {
    return { value: parse(text) };
  } catch {
    return 'throws';
  }
};

const expectAsJson = (text: string): void => {
  expect(readBy(parseOutput, text)).toEqual(readBy((same) => JSON.parse(same) as unknown, text));
};

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('"', '\\', '{"N":"1"}', '__proto__'),
);
const attribute = fc.oneof(
  { weight: 5, arbitrary: fc.record({ N: fc.bigInt().map(String) }) },
  { weight: 5, arbitrary: fc.record({ S: text }) },
  fc.record({ BOOL: fc.boolean() }),
  fc.record({ L: fc.array(fc.record({ S: text })) }),
);
const output = fc.record({ Attributes: fc.dictionary(text, attribute) });

test('an answer with any item is read as JSON.parse reads it', () => {
  fc.assert(
    fc.property(output, (fields) => {
      expectAsJson(JSON.stringify(fields));
    }),
  );
});

test('an answer with an item of strings and numbers is read as JSON.parse reads it', () => {
  const plain = fc.dictionary(
    fc.stringMatching(/^[a-zA-Z_]{1,12}$/),
    fc.oneof(fc.record({ N: text }), fc.record({ S: text })),
  );
  fc.assert(
    fc.property(plain, (item) => {
      expectAsJson(JSON.stringify({ Attributes: item }));
    }),
  );
});

test('a damaged answer is refused exactly where JSON.parse refuses it', () => {
  const damage = fc.record({
    at: fc.nat(),
    remove: fc.nat(3),
    insert: fc.constantFrom('', '"', '{', '}', ',', ':', 'N', ' ', '\n'),
  });
  fc.assert(
    fc.property(output, damage, (fields, { at, remove, insert }) => {
      const whole = JSON.stringify(fields);
      const start = at % whole.length;
      expectAsJson(whole.slice(0, start) + insert + whole.slice(start + remove));
    }),
  );
});

test('an answer that ends too early is refused at every length', () => {
  const whole = JSON.stringify({ Attributes: { w: { S: 'abcdefghijklmnop' }, n: { N: '1' } } });
  for (let length = 0; length < whole.length; length++) expectAsJson(whole.slice(0, length));
});

test('the last of two attributes with one name counts', () => {
  expectAsJson('{"Attributes":{"a":{"N":"1"},"a":{"N":"2"}}}');
});
