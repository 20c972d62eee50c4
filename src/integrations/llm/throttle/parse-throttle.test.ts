import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseThrottle } from './parse-throttle.js';
import { parseWaitMs } from './waits.js';

const NOW_MS = Date.UTC(2027, 0, 15, 8);

function parse(headers: Readonly<Record<string, string>>, body: unknown = null, status = 429) {
  const fields = new Headers(headers);
  const text = body === null ? null : typeof body === 'string' ? body : JSON.stringify(body);
  return parseThrottle({ status, header: (name) => fields.get(name), headers: fields, body: text }, NOW_MS);
}

describe('the waits of providers', () => {
  test.each<readonly [string, Readonly<Record<string, string>>, unknown, number | null, string | null]>([
    [
      'OpenAI, in milliseconds',
      { 'retry-after': '2', 'retry-after-ms': '1250', 'x-ratelimit-remaining-tokens': '0' },
      null,
      1_250,
      'tokens',
    ],
    [
      'OpenAI, by the dimension that is used up',
      {
        'x-ratelimit-remaining-requests': '10',
        'x-ratelimit-reset-requests': '8h0m0s',
        'x-ratelimit-remaining-tokens': '0',
        'x-ratelimit-reset-tokens': '6m0s',
      },
      null,
      360_000,
      'tokens',
    ],
    [
      'OpenAI, where tokens are left but too few',
      {
        'x-ratelimit-remaining-requests': '10',
        'x-ratelimit-reset-requests': '8h',
        'x-ratelimit-remaining-tokens': '3',
        'x-ratelimit-reset-tokens': '12ms',
      },
      null,
      12,
      null,
    ],
    [
      'OpenAI, in the message',
      {},
      { error: { message: 'Limit 10000. Please try again in 1m2.5s. Visit' } },
      62_500,
      null,
    ],
    ['Azure, in milliseconds', { 'x-ms-retry-after-ms': '3500', 'retry-after': '4' }, null, 3_500, null],
    ['Azure, with a wait of -1', { 'retry-after': '-1', 'x-rate-limit-reset-tokens': '55' }, null, 55_000, null],
    [
      'Azure, with a wait of 0',
      { 'retry-after': '0', 'x-ms-retry-after-ms': '0', 'x-rate-limit-reset-tokens': '55' },
      null,
      55_000,
      null,
    ],
    [
      'Anthropic',
      {
        'anthropic-ratelimit-requests-remaining': '4',
        'anthropic-ratelimit-requests-reset': '2027-01-15T09:00:00Z',
        'anthropic-ratelimit-input-tokens-remaining': '0',
        'anthropic-ratelimit-input-tokens-reset': '2027-01-15T08:00:20Z',
      },
      null,
      20_000,
      'input-tokens',
    ],
    [
      'Anthropic, with retry-after',
      { 'retry-after': '17', 'anthropic-ratelimit-tokens-remaining': '0' },
      null,
      17_000,
      'tokens',
    ],
    [
      'Anthropic, a subscription',
      {
        'anthropic-ratelimit-unified-5h-status': 'allowed',
        'anthropic-ratelimit-unified-5h-reset': String(NOW_MS / 1_000 + 60),
        'anthropic-ratelimit-unified-7d-status': 'rejected',
        'anthropic-ratelimit-unified-7d-reset': String(NOW_MS / 1_000 + 7_200),
      },
      null,
      7_200_000,
      'unified-7d',
    ],
    [
      'Groq',
      {
        'x-ratelimit-remaining-requests': '14000',
        'x-ratelimit-reset-requests': '23h1m',
        'x-ratelimit-remaining-tokens': '0',
        'x-ratelimit-reset-tokens': '2m59.56s',
      },
      null,
      179_560,
      'tokens',
    ],
    [
      'Mistral',
      { 'x-ratelimit-remaining-tokens-minute': '0', 'x-ratelimit-limit-tokens-minute': '500000' },
      null,
      null,
      'tokens-minute',
    ],
    [
      'OpenRouter, in milliseconds',
      { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW_MS + 5_000) },
      null,
      5_000,
      'requests',
    ],
    [
      'OpenRouter, in seconds',
      { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW_MS / 1_000 + 5) },
      null,
      5_000,
      'requests',
    ],
    [
      'OpenRouter, in the body',
      {},
      {
        error: { metadata: { headers: { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(NOW_MS + 9_000) } } },
      },
      9_000,
      'requests',
    ],
    [
      'OpenRouter, Retry-After in the body',
      {},
      { error: { metadata: { headers: { 'Retry-After': 7 } } } },
      7_000,
      null,
    ],
    ['OpenAI, in seconds', {}, { error: { message: 'Please try again in 6 seconds.' } }, 6_000, null],
    ['OpenAI, in a short form', {}, { error: { message: 'Please try again in 6s. Contact us' } }, 6_000, null],
    ['Azure, in the message', {}, { error: { message: 'Please retry after 20 seconds.' } }, 20_000, null],
    ['Google, in a list', {}, [{ error: { details: [{ retryDelay: '34.6s' }] } }], 34_600, null],
    ['Google, RetryInfo', {}, { error: { details: [{ reason: 'x' }, { retryDelay: '34.6s' }] } }, 34_600, null],
    ['Google, in the message', {}, { error: { message: 'Quota exceeded. Please retry in 34.6s.' } }, 34_600, null],
    ['no wait at all', {}, 'slow down', null, null],
    [
      'a used-up dimension whose reset is over, beside another that is not used up',
      {
        'anthropic-ratelimit-tokens-remaining': '0',
        'anthropic-ratelimit-tokens-reset': '2027-01-15T07:59:55Z',
        'anthropic-ratelimit-requests-remaining': '10',
        'anthropic-ratelimit-requests-reset': '2027-01-15T09:00:00Z',
      },
      null,
      null,
      'tokens',
    ],
    [
      'a used-up dimension without a reset, beside another',
      {
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-remaining-tokens': '5',
        'x-ratelimit-reset-tokens': '6m0s',
      },
      null,
      null,
      'requests',
    ],
    [
      'two used-up dimensions, of which one has a reset ahead',
      {
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': '20s',
        'x-ratelimit-remaining-tokens': '0',
        'x-ratelimit-reset-tokens': '0s',
      },
      null,
      20_000,
      'requests',
    ],
    ['a message that is the error', {}, { error: 'Please try again in 6s' }, 6_000, null],
    ['a message that is not in an error', {}, { message: 'Please try again in 6s' }, 6_000, null],
    [
      'a message in prose of more than an hour',
      {},
      { error: { message: 'Please try again in 7h12m0s.' } },
      3_600_000,
      null,
    ],
    [
      'a text of the caller in another member',
      {},
      { error: { message: 'slow down', param: 'try again in 99h' } },
      null,
      null,
    ],
    [
      'a text of the caller in the message',
      {},
      { error: { message: "Your prompt: 'try again in 99h'" } },
      3_600_000,
      null,
    ],
    ['a message of a body that is cut', {}, '{"error":{"message":"Please try again in 6s","par', 6_000, null],
    ['a text of the caller in a body that is cut', {}, '{"error":{"param":"try again in 99h","mess', null, null],
    ['a page of a proxy', {}, '<html>Please try again in 6s</html>', null, null],
  ])('the wait of %s is read', (_, headers, body, waitMs, dimension) => {
    expect(parse(headers, body)).toEqual({ waitMs, dimension });
  });

  test('the throttling error of Bedrock is found by its header or its body, with any status', () => {
    expect(parse({ 'x-amzn-errortype': 'ThrottlingException:http://x' }, null, 400)).toEqual({
      waitMs: null,
      dimension: null,
    });
    expect(parse({}, { __type: 'ThrottlingException' }, 400)).toEqual({ waitMs: null, dimension: null });
    expect(parse({}, { __type: 'com.amazon#ThrottlingException', message: 'slow' }, 400)?.waitMs).toBe(null);
    expect(parse({}, { __type: 'ValidationException' }, 400)).toBe(null);
  });

  test('the text of a caller that an error repeats is no refusal', () => {
    const message = "Invalid schema for function 'ThrottlingException, try again in 99h'";
    expect(parse({}, { error: { message, type: 'invalid_request_error', code: null } }, 400)).toBe(null);
    expect(parse({}, message, 400)).toBe(null);
  });

  test('other answers, and denials of another Headgate, are no refusals of a provider', () => {
    expect(parse({ 'retry-after': '5' }, null, 503)).toBe(null);
    expect(parse({ 'retry-after': '5', 'x-headgate-reason': 'exhausted' })).toBe(null);
  });

  test('an instant is compared with the clock of the provider, which may differ from the own one', () => {
    const date = new Date(NOW_MS - 300_000).toUTCString();
    const reset = new Date(NOW_MS - 300_000 + 20_000).toISOString();
    expect(parse({ date, 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset })?.waitMs).toBe(20_000);
  });

  test('a body that is shaped to make a reader throw is read like any other', () => {
    const hostile = { toString: 1, valueOf: 1 };
    const bodies = [
      { error: { metadata: { headers: { 'x-ratelimit-reset': hostile } } } },
      { error: { details: [null, { retryDelay: hostile }, 7] } },
      { error: hostile },
      hostile,
      [hostile],
    ];
    for (const body of bodies) expect(parse({}, body)).toEqual({ waitMs: null, dimension: null });
  });

  test('the name of a dimension contains nothing but letters, digits and dashes', () => {
    const odd = { 'x-ratelimit-remaining-sk_secret': '0', [`x-ratelimit-remaining-${'k'.repeat(60)}`]: '0' };
    expect(parse(odd)?.dimension).toBe(null);
  });
});

describe('the forms of a wait', () => {
  test('a number is read by its size: seconds, an instant in seconds, an instant in milliseconds', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 999_999_999 }), (seconds) => {
        expect(parseWaitMs(String(seconds), NOW_MS)).toBe(seconds * 1_000);
      }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000_000 }), (seconds) => {
        expect(parseWaitMs(String(NOW_MS / 1_000 + seconds), NOW_MS)).toBe(seconds * 1_000);
        expect(parseWaitMs(String(NOW_MS + seconds), NOW_MS)).toBe(seconds);
        expect(parseWaitMs(new Date(NOW_MS + seconds).toISOString(), NOW_MS)).toBe(seconds);
        expect(parseWaitMs(new Date(NOW_MS + seconds * 1_000).toUTCString(), NOW_MS)).toBe(seconds * 1_000);
      }),
    );
  });

  test('a duration in the notation of Go is read to the millisecond', () => {
    fc.assert(
      fc.property(fc.nat(99), fc.nat(59), fc.nat(59_999), (hours, minutes, ms) => {
        const expected = hours * 3_600_000 + minutes * 60_000 + ms;
        expect(parseWaitMs(`${hours}h${minutes}m${ms / 1_000}s`, NOW_MS)).toBe(expected === 0 ? null : expected);
      }),
    );
    expect([parseWaitMs('12ms', 0), parseWaitMs('250µs', 0), parseWaitMs('1m0s', 0)]).toEqual([12, 1, 60_000]);
  });

  test('an instant without a zone is in UTC, wherever the process runs', () => {
    const zone = process.env['TZ'];
    try {
      for (const TZ of ['UTC', 'Asia/Tokyo', 'America/New_York']) {
        process.env['TZ'] = TZ;
        for (const text of ['2027-01-15T08:00:20', '2027-01-15 08:00:20', 'Fri Jan 15 08:00:20 2027']) {
          expect([TZ, text, parseWaitMs(text, NOW_MS)]).toEqual([TZ, text, 20_000]);
        }
      }
    } finally {
      if (zone === undefined) delete process.env['TZ'];
      else process.env['TZ'] = zone;
    }
  });

  test('a text that is no instant states no wait, though JavaScript finds a date in it', () => {
    for (const text of ['soon 2099', 'model-2099', '2099', 'after 12/31']) {
      const number = Number(text);
      const expected = Number.isNaN(number) ? null : number * 1_000;
      expect([text, parseWaitMs(text, NOW_MS)]).toEqual([text, expected]);
    }
  });

  test('a wait is never negative, infinite or fractional, whatever the text', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.double().map(String), fc.constantFrom('', ' ', '-1', '0', '1e400', 'NaN')),
        (text) => {
          const waitMs = parseWaitMs(text, NOW_MS);
          if (waitMs !== null) expect(Number.isInteger(waitMs) && waitMs > 0).toBe(true);
        },
      ),
    );
  });
});
