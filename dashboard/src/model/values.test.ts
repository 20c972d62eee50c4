import { describe, expect, test } from 'vitest';
import type { StatusView, UsageView } from '../api/types.js';
import { usageCsv } from './csv.js';
import { explain, parseAmounts, sentenceOf } from './explain.js';
import { formatAge, formatRate, formatShort, formatWindow } from './format.js';
import { instantOf } from './instant.js';
import { buildAddress, parseRoute } from './route.js';
import { sumSlots } from './slots.js';
import { chartOf, totalsByEntity } from './usage-series.js';
import { diffValues } from './value-diff.js';

const usage = (entityId: string, hour: number, tokens: Record<string, number>): UsageView => ({
  entityId,
  resource: 'gpt',
  window: 'hourly',
  windowStart: `2026-01-01T0${hour}:00:00.000Z`,
  windowEnd: `2026-01-01T0${hour + 1}:00:00.000Z`,
  tokens,
  acquires: 1,
  expired: 0,
});

test('a CSV has one column for each limit, quotes what needs it, and no cell that a spreadsheet would run', () => {
  const csv = usageCsv([usage('a', 1, { tpm: 5 }), usage('=1+1,"x"', 2, { rpm: 1 })]);
  expect(csv).toBe(
    'entity,resource,window,start,end,rpm,tpm,acquires,expired\r\n' +
      'a,gpt,hourly,2026-01-01T01:00:00.000Z,2026-01-01T02:00:00.000Z,0,5,1,0\r\n' +
      `"'=1+1,""x""",gpt,hourly,2026-01-01T02:00:00.000Z,2026-01-01T03:00:00.000Z,1,0,1,0\r\n`,
  );
});

test('the chart of usage sums each group by window, and totals are by entity', () => {
  const groups = [
    { label: 'all', usage: [usage('a', 1, { rpm: 2 }), usage('b', 1, { rpm: 3 }), usage('b', 2, { tpm: 9 })] },
    { label: 'b', usage: [usage('b', 3, { rpm: 4 })] },
  ];
  expect(chartOf(groups, 'rpm').series).toEqual([
    { label: 'all', values: [5, 0, 0] },
    { label: 'b', values: [0, 0, 4] },
  ]);
  expect(chartOf(groups, '').series[0]?.values).toEqual([2, 1, 0]);
  expect(
    totalsByEntity(
      groups.flatMap((group) => group.usage),
      'rpm',
    ),
  ).toEqual([
    { entityId: 'b', total: 7 },
    { entityId: 'a', total: 2 },
  ]);
});

test('a comparison of audit values names each field, and the items of lists by their limit', () => {
  const before = { limits: ['rpm:1/min', 'tpm:5/min'], name: 'x', version: 1, metadata: { plan: 'a' } };
  const after = { limits: ['rpm:2/min', 'tpm:5/min', 'slots:1/concurrent'], version: 2, metadata: { plan: 'a' } };
  expect(diffValues(before, after)).toEqual([
    { field: 'limits[rpm]', kind: 'changed', before: 'rpm:1/min', after: 'rpm:2/min' },
    { field: 'limits[tpm]', kind: 'same', before: 'tpm:5/min', after: 'tpm:5/min' },
    { field: 'name', kind: 'removed', before: 'x', after: '' },
    { field: 'metadata.plan', kind: 'same', before: 'a', after: 'a' },
    { field: 'limits[slots]', kind: 'added', before: '', after: 'slots:1/concurrent' },
  ]);
  expect(diffValues(null, null)).toEqual([]);
  expect(diffValues('old', 'new')).toEqual([{ field: 'value', kind: 'changed', before: 'old', after: 'new' }]);
});

test('an address is parsed into the page and the parameters that it was built from', () => {
  const params = { id: 'acme/a b&c', resource: 'gpt-4' };
  const url = new URL(buildAddress('entity', { ...params, search: '' }), 'http://x');
  expect(parseRoute(url.pathname, url.search)).toEqual({ page: 'entity', params });
  expect(buildAddress('overview')).toBe('/dashboard/');
  expect(parseRoute('/dashboard/nothing', '')).toEqual({ page: 'overview', params: {} });
});

test('numbers and times are short', () => {
  expect([0, 0.25, 3, 12.4].map(formatRate)).toEqual(['0', '0.3', '3', '12']);
  expect([999, 1_500, 2_000_000, -1_000].map(formatShort)).toEqual(['999', '1.5k', '2M', '-1k']);
  expect([0, 61_000, 3_700_000, 90_000_000].map((ms) => formatAge(0, ms))).toEqual([
    '0 s',
    '1 min 1 s',
    '1 h 1 min',
    '1 d 1 h',
  ]);
  expect(formatWindow('daily', '2026-01-02T00:00:00.000Z')).toBe('2026-01-02');
});

test('slots in use are added up by resource and limit, over the buckets that use any', () => {
  const limit = {
    name: 'slots',
    text: '',
    kind: 'concurrent',
    capacity: 3,
    refillAmount: 0,
    refillPeriodMs: 0,
  } as const;
  const bucket = (available: number) => ({
    entityId: 'a',
    resource: 'gpt',
    limits: [{ limit, available, consumed: 0 }],
    holders: 0,
    acquires: 0,
    expired: 0,
  });
  expect(sumSlots([bucket(1), bucket(0), bucket(3)])).toEqual([
    { resource: 'gpt', limit: 'slots', used: 5, capacity: 6 },
  ]);
});

describe('the explanation of an acquire', () => {
  const limit = {
    name: 'rpm',
    text: 'rpm:10/min',
    kind: 'rate',
    capacity: 10,
    refillAmount: 10,
    refillPeriodMs: 60_000,
  } as const;
  const status = (change: Partial<StatusView>): StatusView => ({
    entityId: 'a',
    resource: 'r',
    limit,
    available: 4,
    requested: 5,
    exceeded: false,
    retryAfterMs: 0,
    ...change,
  });
  const level = {
    entityId: 'a',
    config: { limits: [limit, { ...limit, name: 'tpm' }], configSource: 'resource', onUnavailable: 'block' },
    statuses: [status({ available: 9, requested: 0 })],
  };

  test('a granted limit has what is left after it, and a limit that was not asked says so', () => {
    expect(explain([level], [status({})], true)).toEqual([
      {
        entityId: 'a',
        source: 'resource',
        limits: [
          { name: 'rpm', text: 'rpm:10/min', verdict: 'fits', asked: 5, before: 9, after: 4, remark: '' },
          { name: 'tpm', text: 'rpm:10/min', verdict: 'not asked', asked: null, before: null, after: null, remark: '' },
        ],
      },
    ]);
  });

  test('a refused limit says how much is missing, what must stay, and when it fits', () => {
    const refused = status({ requested: 11, reserved: 3, exceeded: true, retryAfterMs: 30_000 });
    expect(explain([level], [refused], false)[0]?.limits[0]).toMatchObject({
      verdict: 'refused',
      after: 9,
      remark: 'refused: 5 too many (3 must stay), fits in 30 s',
    });
    expect(explain([level], [{ ...refused, shadow: true }], false)[0]?.limits[0]?.verdict).toBe('shadow');
  });

  test('the decision is one sentence', () => {
    const denied = { granted: false, status: 429, code: 'limit.exceeded', detail: 'No limits are configured' } as const;
    expect(sentenceOf({ ...denied, reason: 'exhausted', retryAfterMs: 1_500 }, false)).toBe(
      'Denied (exhausted). It fits in 1.5 s. Nothing was taken at any level.',
    );
    expect(sentenceOf({ ...denied, reason: 'impossible', retryAfterMs: null }, true)).toBe(
      'Would be denied (impossible). Waiting does not help.',
    );
    expect(sentenceOf(denied, false)).toBe('No limits are configured');
  });

  test('amounts are read from name=amount, and another word is named', () => {
    expect(parseAmounts(' rpm=1, tpm=500 ')).toEqual({ amounts: { rpm: 1, tpm: 500 } });
    expect(parseAmounts('rpm')).toEqual({ error: 'Expected name=amount, such as rpm=1, got rpm' });
  });
});

test('a time without a zone is in UTC, whatever the time zone of the browser is', () => {
  expect(instantOf('2026-11-16T14:30')).toBe('2026-11-16T14:30:00.000Z');
  expect(instantOf('2026-11-16')).toBe('2026-11-16T00:00:00.000Z');
  expect(instantOf('2026-11-16T14:30:00.000Z')).toBe('2026-11-16T14:30:00.000Z');
  expect([instantOf(''), instantOf('yesterday')]).toEqual([undefined, 'yesterday']);
});
