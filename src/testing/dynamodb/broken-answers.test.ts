import { expect, test } from 'vitest';
import { asHtmlPage, UNSERVED, withBareObject, withHalfOfBody, withoutBody } from './broken-answers.js';
import { fault } from './fault.js';
import type { RawAnswer } from './forward.js';

const ANSWER: RawAnswer = {
  status: 200,
  headers: ['Content-Type', 'application/x-amz-json-1.0', 'x-amz-crc32', '7', 'x-amzn-RequestId', 'id'],
  body: Buffer.from('{"Attributes":{}}'),
};

test.each([
  ['has no body', withoutBody, ''],
  ['has a bare object as its body', withBareObject, '{}'],
  ['has half of the body', withHalfOfBody, '{"Attribu'],
])('a broken answer %s, and keeps its status and its headers except the checksum', (_, broken, body) => {
  const { status, headers, body: left } = broken(ANSWER);
  expect([status, String(left)]).toEqual([200, body]);
  expect(headers).toEqual(['Content-Type', 'application/x-amz-json-1.0', 'x-amzn-RequestId', 'id']);
});

test('a broken answer can be an HTML page of a proxy, whether the engine answered or not', () => {
  for (const answer of [ANSWER, UNSERVED]) {
    const { status, headers, body } = asHtmlPage(403)(answer);
    expect([status, headers]).toEqual([403, ['Content-Type', 'text/html']]);
    expect(String(body)).toContain('<html>');
  }
});

test.each([0, 99, 200.5, 600, Number.NaN])('an HTML answer cannot have the status %d', (status) => {
  expect(() => fault.htmlAnswer(status)).toThrow('a whole number from 200 to 599');
});
