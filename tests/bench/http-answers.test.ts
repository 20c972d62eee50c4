import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AnswerReader } from '../../bench/http-answers.js';

interface Told {
  readonly status: number;
  readonly body: string;
}

const bytesOf = ({ status, body }: Told): Buffer =>
  Buffer.from(`HTTP/1.1 ${status} Text\r\nContent-Length: ${Buffer.byteLength(body)}\r\ndate: now\r\n\r\n${body}`);

function readAll(chunks: readonly Buffer[]): readonly Told[] {
  const answers: Told[] = [];
  const reader = new AnswerReader((status, body) => answers.push({ status, body: body.toString() }));
  for (const chunk of chunks) reader.read(chunk);
  return answers;
}

test('however the bytes of a connection are split, the reader finds every answer once and in order', () => {
  const told = fc.record({ status: fc.constantFrom(200, 429, 503), body: fc.string({ unit: 'binary' }) });
  fc.assert(
    fc.property(fc.array(told), fc.array(fc.nat()), (answers, cuts) => {
      const bytes = Buffer.concat(answers.map(bytesOf));
      const sorted = cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b);
      const chunks = [...sorted, bytes.length].map((end, at) => bytes.subarray(sorted[at - 1] ?? 0, end));
      expect(readAll(chunks)).toEqual(answers);
    }),
  );
});

test('an answer without a length is an error, because its end is unknown', () => {
  expect(() => readAll([Buffer.from('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')])).toThrow(
    'content-length',
  );
});
