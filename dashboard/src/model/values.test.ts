import { describe, expect, test } from 'vitest';
import type { StatusView, UsageView } from '../api/types.js';
import { usageCsv } from './csv.js';
import { explain, parseAmounts, sentenceOf } from './explain.js';
import { formatAge, formatClock, formatRate, formatShort, formatTime, formatWindow } from './format.js';
import { instantOf } from './instant.js';
import { buildAddress, parseRoute } from './route.js';
import { busiestBuckets, fullestSlots } from './slots.js';
import { apartFromParents, chartOf, totalsBy } from './usage-series.js';
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
  const all = groups.flatMap((group) => group.usage);
  expect(totalsBy('entityId', all, 'rpm')).toEqual([
    { name: 'b', total: 7 },
    { name: 'a', total: 2 },
  ]);
  expect(totalsBy('resource', all, 'rpm')).toEqual([{ name: 'gpt', total: 9 }]);
});

test('windows without a record between two others have the value 0, by hour, day and month', () => {
  const filled = (window: UsageView['window'], ...starts: readonly string[]) => {
    const rows = starts.map((start) => ({ ...usage('a', 1, { rpm: 2 }), window, windowStart: `${start}.000Z` }));
    const chart = chartOf([{ label: 'a', usage: rows }], 'rpm');
    return chart.starts.map((start, at) => `${start.slice(0, 13)} ${chart.series[0]?.values[at]}`);
  };
  expect(filled('hourly', '2026-01-01T22:00:00', '2026-01-02T01:00:00')).toEqual([
    '2026-01-01T22 2',
    '2026-01-01T23 0',
    '2026-01-02T00 0',
    '2026-01-02T01 2',
  ]);
  expect(filled('daily', '2026-02-27T00:00:00', '2026-03-01T00:00:00')).toHaveLength(3);
  expect(filled('monthly', '2025-11-01T00:00:00', '2026-02-01T00:00:00')).toEqual([
    '2025-11-01T00 2',
    '2025-12-01T00 0',
    '2026-01-01T00 0',
    '2026-02-01T00 2',
  ]);
  // A gap of years is not filled.
  expect(filled('hourly', '2020-01-01T00:00:00', '2026-01-01T00:00:00')).toHaveLength(2);
});

test('the usage of parents is a group of its own, because what cascades to them is counted for the caller too', () => {
  const all = [usage('team', 1, { rpm: 5 }), usage('team/a', 1, { rpm: 5 }), usage('alone', 1, { rpm: 1 })];
  const entity = { id: 'team/a', name: null, parentId: 'team', metadata: {}, version: 1, createdAt: '' };
  const sums = (cascade: boolean) =>
    chartOf(apartFromParents(all, [{ ...entity, cascade }]), 'rpm').series.map(({ label, values }) => [
      label,
      ...values,
    ]);
  expect(sums(true)).toEqual([
    ['entities without children', 6],
    ['their parents', 5],
  ]);
  expect(sums(false)).toEqual([['entities without children', 11]]);
  expect(apartFromParents(all, null)).toEqual([{ label: 'all entities, at every level', usage: all }]);
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
  expect(diffValues({ amountsMilli: { slots: '1000' } }, { taken: [], capacityMilli: 2_500 })).toEqual([
    { field: 'amounts.slots', kind: 'removed', before: '1', after: '' },
    { field: 'capacity', kind: 'added', before: '', after: '2.5' },
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
  expect([0, 0.25, 3, 1_234.56].map(formatRate)).toEqual(['0', '0.3', '3', '1,234.6']);
  expect([999, 1_500, 2_000_000, -1_000].map(formatShort)).toEqual(['999', '1.5K', '2M', '-1K']);
  const noon = new Date(2026, 0, 2, 12, 3, 4).getTime();
  expect([formatClock(noon), formatTime(noon)]).toEqual(['12:03:04', '2026-01-02 12:03:04']);
  expect([0, 61_000, 3_700_000, 90_000_000].map((ms) => formatAge(0, ms))).toEqual([
    '1 s',
    '1 min 1 s',
    '1 h 2 min',
    '1 d 1 h',
  ]);
  expect(formatWindow('daily', '2026-01-02T00:00:00.000Z')).toBe('2026-01-02');
});

test('the slots in use are listed by bucket, the fullest first, without those of idle buckets', () => {
  const limit = {
    name: 'slots',
    text: '',
    kind: 'concurrent',
    capacity: 3,
    refillAmount: 0,
    refillPeriodMs: 0,
  } as const;
  const bucket = (entityId: string, available: number) => ({
    entityId,
    resource: 'gpt',
    limits: [{ limit, available, consumed: 0 }],
    holders: 0,
    acquires: 0,
    expired: 0,
  });
  expect(fullestSlots([bucket('a', 1), bucket('b', 0), bucket('c', 3)])).toEqual([
    { entityId: 'b', resource: 'gpt', limit: 'slots', used: 3, capacity: 3 },
    { entityId: 'a', resource: 'gpt', limit: 'slots', used: 2, capacity: 3 },
  ]);
});

test('the buckets with the most leases are those that are read', () => {
  const lease = (entityId: string) => ({
    id: '',
    entityId,
    resource: 'gpt',
    amounts: { slots: 1 },
    caller: null,
    acquiredAt: null,
    expiresAt: '',
    portable: false,
  });
  expect(busiestBuckets(['a', 'b', 'c', 'b', 'c', 'b'].map(lease), 2)).toEqual([
    { entityId: 'b', resource: 'gpt' },
    { entityId: 'c', resource: 'gpt' },
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
    config: {
      limits: [limit, { ...limit, name: 'tpm' }],
      configSource: 'resource' as string | null,
      onUnavailable: 'block',
    },
    statuses: [status({ available: 9, requested: 0 })],
  };

  const GRANTED = { isGranted: true, isDryRun: false };
  const DENIED = { isGranted: false, isDryRun: false };
  const explained = (one: StatusView, tried: object, before = level) =>
    explain([before], { ...DENIED, ...tried, statuses: [one] }, {});

  test('limits name the level that they come from in the words of the page Limits', () => {
    const sources = ['entity', 'entity_default', 'resource', 'system', 'code', null].map(
      (configSource) =>
        explained(status({}), DENIED, { ...level, config: { ...level.config, configSource } })[0]?.source,
    );
    expect(sources).toEqual([
      'entity and resource',
      'entity default',
      'resource',
      'system',
      'the code of the server',
      'no limits',
    ]);
  });

  test('a granted limit has what is left after it, and a limit that was not asked says so', () => {
    expect(explained(status({ near: true }), GRANTED)).toEqual([
      {
        entityId: 'a',
        source: 'resource',
        limits: [
          { name: 'rpm', text: 'rpm:10/min', verdict: 'fits', asked: 5, before: 9, after: 4, remark: 'near the limit' },
          { name: 'tpm', text: 'rpm:10/min', verdict: 'not asked', asked: null, before: null, after: null, remark: '' },
        ],
      },
    ]);
  });

  test('a refused limit says how much is missing, what must stay, and when it fits', () => {
    const refused = status({ requested: 11, reserved: 3, exceeded: true, retryAfterMs: 30_000 });
    expect(explained(refused, DENIED)[0]?.limits[0]).toMatchObject({
      verdict: 'refused',
      before: 4,
      after: 4,
      remark: 'refused: 10 too many (3 must stay), fits in 30 s',
    });
    expect(explained({ ...refused, shadow: true }, DENIED)[0]?.limits[0]?.verdict).toBe('shadow');
  });

  test('the numbers of an asked limit are those of the decision, not what was read before other calls', () => {
    const before = { ...level, statuses: [status({ available: 0, requested: 0 })] };
    const first = (tried: object) => explained(status({ available: 4, requested: 3 }), tried, before)[0]?.limits[0];
    expect(first(DENIED)).toMatchObject({ verdict: 'fits', before: 4, after: 4 });
    expect(first(GRANTED)).toMatchObject({ verdict: 'fits', before: 7, after: 4 });
    // A dry run shows what the ask would leave.
    expect(first({ ...GRANTED, isDryRun: true })).toMatchObject({ verdict: 'fits', before: 4, after: 1 });
  });

  test('an unlimited limit that was asked fits, and slots fit at the latest when their leases expire', () => {
    const unlimited = { ...level, statuses: [], config: { ...level.config, limits: [{ ...limit, capacity: null }] } };
    const asked = explain([unlimited], { ...GRANTED, statuses: [] }, { rpm: 7 })[0]?.limits[0];
    expect(asked).toMatchObject({ verdict: 'fits', asked: 7, before: null, after: null });
    const slots = status({ limit: { ...limit, kind: 'concurrent' }, exceeded: true, retryAfterMs: 30_000 });
    expect(explained(slots, DENIED)[0]?.limits[0]?.remark).toContain('fits in at most 30 s');
  });

  test('the decision is one sentence', () => {
    const denied = { granted: false, detail: 'No limits are configured' } as const;
    expect(sentenceOf({ ...denied, reason: 'exhausted', retryAfterMs: 1_500 }, false)).toBe(
      'Denied (exhausted). It fits in 1.5 s. Nothing was taken at any level.',
    );
    expect(sentenceOf({ ...denied, reason: 'impossible', retryAfterMs: null }, true)).toBe(
      'Would be denied (impossible). Waiting does not help.',
    );
    expect(sentenceOf(denied, false)).toBe('No limits are configured');
    const lease = { id: '', token: null };
    const open = { granted: true, lease, statuses: [], decidedBy: 'open' } as const;
    expect(sentenceOf(open, false)).toBe('Granted (decided by open, not by the store).');
    const paused = { entityId: 'team', resource: 'gpt-4', until: null, reason: 'abuse' };
    expect(sentenceOf({ ...denied, reason: 'paused', retryAfterMs: null, paused }, true)).toBe(
      'Would be denied (paused). team on gpt-4 is paused: abuse. Waiting does not help.',
    );
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
