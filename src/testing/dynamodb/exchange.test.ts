import { expect, test } from 'vitest';
import { datedHeaders } from './exchange.js';
import { forwardable } from './forward.js';

const NOW_MS = Date.UTC(2024, 0, 1);

test('the date of an answer is shifted by whole milliseconds, and the header occurs once', () => {
  const headers = ['date', 'Mon, 01 Jan 2024 12:00:00 GMT', 'X-Other', 'kept'];
  expect(datedHeaders(headers, -300_000, NOW_MS)).toEqual(['X-Other', 'kept', 'Date', 'Mon, 01 Jan 2024 11:55:00 GMT']);
});

test.each([[[]], [['Date', 'yesterday']]])('an answer with the headers %j gets a date', (headers) => {
  expect(datedHeaders(headers, 1_000, NOW_MS)).toEqual(['Date', 'Mon, 01 Jan 2024 00:00:01 GMT']);
});

test('hop-by-hop headers and the content length are not forwarded', () => {
  const headers = [
    'Connection',
    'keep-alive',
    'Transfer-Encoding',
    'chunked',
    'content-length',
    '3',
    'X-Amz-Date',
    'now',
  ];
  expect(forwardable(headers)).toEqual(['X-Amz-Date', 'now']);
  expect(forwardable(headers, ['x-amz-date'])).toEqual([]);
});
