import { describe, expect, test } from 'vitest';
import { parseAmounts, parseDuration, parseInstant, parseLimits, parseMetadata, parseWhole } from './parse.js';

const NOW = new Date('2027-01-31T12:00:00Z');

test.each([
  ['2027-01-31', '2027-01-31T00:00:00.000Z'],
  ['2027-01-31T10:00', '2027-01-31T10:00:00.000Z'],
  ['2027-01-31T10:00:05.25Z', '2027-01-31T10:00:05.250Z'],
  ['2027-01-31T10:00+02:00', '2027-01-31T08:00:00.000Z'],
  ['6hour', '2027-01-31T06:00:00.000Z'],
  ['90s', '2027-01-31T11:58:30.000Z'],
  ['1day', '2027-01-30T12:00:00.000Z'],
])('the time %s is %s in any time zone of the machine', (text, instant) => {
  expect(parseInstant('--from', text, NOW).toISOString()).toBe(instant);
});

test.each(['', 'now', '2027', '2027-13-01', '2027-02-30', '2027-01-31 10:00', '2027-01-31T25:00', '-6hour', '6 hour'])(
  'the time %j is refused',
  (text) => {
    expect(() => parseInstant('--from', text, NOW)).toThrow(/^Expected `--from` to be a UTC time/);
  },
);

test.each([
  ['5000ms', 5_000],
  ['90s', 90_000],
  ['5min', 300_000],
  ['2h', 7_200_000],
  ['7day', 604_800_000],
])('the duration %s has %d ms', (text, durationMs) => {
  expect(parseDuration('--lease-ttl', text)).toBe(durationMs);
});

test.each(['', '5', '5 min', '1.5h', '5weeks', '-5s', 'constructor', '5constructor'])(
  'the duration %j is refused',
  (text) => {
    expect(() => parseDuration('--lease-ttl', text)).toThrow(/^Expected `--lease-ttl` to be a duration/);
  },
);

describe('amounts', () => {
  test('amounts are read for any name of a limit', () => {
    const amounts = parseAmounts(['rpm=1', 'constructor=2', '__proto__=3']);
    expect(Object.entries(amounts)).toEqual([
      ['rpm', 1],
      ['constructor', 2],
      ['__proto__', 3],
    ]);
  });

  test.each([['rpm'], ['rpm='], ['=1'], ['rpm=1.5'], ['rpm=-1'], ['rpm=1e3'], ['rpm==1']])(
    'the amount %s is refused',
    (text) => {
      expect(() => parseAmounts([text])).toThrow(/^Expected `-c` to be a limit and a whole amount/);
    },
  );

  test('a limit that is named twice is refused', () => {
    expect(() => parseAmounts(['rpm=1', 'rpm=2'])).toThrow('given once for rpm');
  });
});

test('limits are read by Limit.parse, and no limits are not an empty list', () => {
  expect(parseLimits(['rpm:1/min', 'slots:2/concurrent'])?.map(String)).toEqual(['rpm:1/min', 'slots:2/concurrent']);
  expect(parseLimits(undefined)).toBeUndefined();
  expect(() => parseLimits(['rpm:1/fortnight'])).toThrow(/^Expected `limit` to be a limit such as/);
});

test('a whole number has only digits', () => {
  expect(parseWhole('--limit', '0100')).toBe(100);
  for (const text of ['', '1e2', '0x10', ' 1', '1.0', '9'.repeat(16)]) {
    expect(() => parseWhole('--limit', text)).toThrow(/^Expected `--limit` to be a whole number, got/);
  }
});

test('metadata must be a JSON object', () => {
  expect(parseMetadata('{"a":[1]}')).toEqual({ a: [1] });
  for (const text of ['', '[]', 'null', '"x"', '{a:1}']) {
    expect(() => parseMetadata(text)).toThrow(/^Expected `--metadata` to be a JSON object/);
  }
});
