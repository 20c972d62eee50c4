import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseEvent } from './events.js';
import { SseParser } from './sse-parser.js';

const TEXT =
  ': connected\n\nevent: decision\ndata: {"a":1}\n\nevent: pause\r\ndata: x\r\ndata: y\r\n\r\ndata:plain\n\n: still here\n\n';
const EVENTS = [
  ['decision', '{"a":1}'],
  ['pause', 'x\ny'],
  ['message', 'plain'],
];

test('the events of a stream are the same however the stream is cut into pieces', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: TEXT.length })), (cuts) => {
      const found: [string, string][] = [];
      const parser = new SseParser((type, data) => found.push([type, data]));
      const at = [0, ...cuts.toSorted((a, b) => a - b), TEXT.length];
      for (let piece = 1; piece < at.length; piece++) parser.push(TEXT.slice(at[piece - 1], at[piece]));
      expect(found).toEqual(EVENTS);
    }),
  );
});

test('a line without an end is refused before it fills the memory', () => {
  const parser = new SseParser(() => {});
  expect(() => parser.push('x'.repeat(1_000_001))).toThrow('too long');
});

test('an event of an unknown type, or without JSON, is ignored', () => {
  expect(parseEvent('decision', '{')).toBeNull();
  expect(parseEvent('missed', '{"count":2}')).toEqual({ type: 'missed', data: { count: 2 } });
});
