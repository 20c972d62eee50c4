import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { boundOfInput } from './input-bound.js';

const BINARY = 'A'.repeat(10_000);

/** The bytes of all names and texts in a value. */
function bytesIn(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  if (typeof value !== 'object' || value === null) return 0;
  return Object.entries(value).reduce(
    (sum, [name, field]) => sum + (Array.isArray(value) ? 0 : Buffer.byteLength(name)) + bytesIn(field),
    0,
  );
}

describe('the bound of the input', () => {
  test('the bound is at least the bytes of all text, in any language, and at most a little more than the JSON of the request', () => {
    const text = fc.oneof(fc.string(), fc.string({ unit: 'grapheme' }), fc.constantFrom('汉字', '👩‍👩‍👧', 'data: 1'));
    const parts = fc.array(fc.record({ type: text, text, content: fc.array(text, { maxLength: 3 }) }), {
      maxLength: 5,
    });
    fc.assert(
      fc.property(fc.dictionary(text, parts, { maxKeys: 4 }), (request) => {
        const bound = boundOfInput(request);
        expect(bound).toBeGreaterThanOrEqual(bytesIn(request));
        expect(bound).toBeLessThanOrEqual(2 * Buffer.byteLength(JSON.stringify(request)) + 32);
      }),
    );
  });

  test('numbers and schemas are covered, also under names that elsewhere mean binary data', () => {
    const properties = { url: { type: 'string', description: 'the address of the page' }, id: { maximum: 1_234_567 } };
    expect(boundOfInput({ tools: [{ parameters: { properties } }] })).toBeGreaterThanOrEqual(
      JSON.stringify(properties).length,
    );
    const data = 'a text of many words '.repeat(50);
    expect(boundOfInput({ messages: [{ content: { data } }] })).toBeGreaterThan(data.length);
    expect(boundOfInput({ messages: [{ content: BINARY }] })).toBeGreaterThan(BINARY.length);
  });

  test('images, audio and files as text are left out', () => {
    const parts = [
      { type: 'image_url', image_url: { url: `data:image/png;base64,${BINARY}` } },
      { type: 'input_audio', input_audio: { data: BINARY } },
      { type: 'image', source: { type: 'base64', data: BINARY } },
      { inlineData: { data: BINARY } },
      new Uint8Array(10_000),
    ];
    expect(boundOfInput({ messages: parts })).toBeLessThan(400);
  });

  test('a request that is nested very deeply does not exhaust the stack', () => {
    let nested: unknown = 'text';
    for (let depth = 0; depth < 100_000; depth++) nested = [nested];
    expect(boundOfInput(nested)).toBeGreaterThan(0);
  });
});
