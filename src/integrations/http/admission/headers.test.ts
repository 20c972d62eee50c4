import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LimitStatus } from '../../../core/bucket/decide.js';
import { Limit } from '../../../core/limit.js';
import { type DecidedLimits, HEADER_FORMATS, rateLimitHeaders } from './headers.js';

const RPM = Limit.perMinute('rpm', 100);
const TPM = Limit.perMinute('tpm', 10_000);

function statusOf(limit: Limit, change: Partial<LimitStatus> = {}): LimitStatus {
  const left = { available: limit.capacity, requested: 1, exceeded: false, retryAfterMs: 0 };
  return { entityId: 'user-1', resource: 'gpt-4', limit, ...left, ...change };
}

function granted(...statuses: LimitStatus[]): DecidedLimits {
  return { granted: true, statuses, retryAfterMs: null };
}

function denied(...statuses: LimitStatus[]): DecidedLimits {
  const waits = statuses.map(({ retryAfterMs }) => retryAfterMs);
  return { granted: false, statuses, retryAfterMs: waits.includes(null) ? null : Math.max(...(waits as number[])) };
}

const draft = (decision: DecidedLimits) => Object.fromEntries(rateLimitHeaders(decision, { format: 'draft-10' }));

describe('the headers of draft 10', () => {
  test('a grant states the quota, its window, what is left and the seconds until it is full', () => {
    expect(draft(granted(statusOf(RPM, { available: 48 })))).toEqual({
      'RateLimit-Policy': '"rpm";q=100;w=60',
      RateLimit: '"rpm";r=48;t=32',
    });
  });

  test('a shadow limit is not stated, because it refuses nothing', () => {
    const shadow = statusOf(TPM, { available: 0, exceeded: true, retryAfterMs: 50_000, shadow: true });
    const refused = statusOf(RPM, { available: 0, exceeded: true, retryAfterMs: 1_200 });
    expect(draft(granted(shadow))).toEqual({});
    expect(draft({ ...denied(refused), statuses: [refused, shadow] })).toMatchObject({
      'Retry-After': '2',
      RateLimit: '"rpm";r=0;t=2',
    });
  });

  test('a denial states its wait rounded up to seconds, and in milliseconds', () => {
    const refused = statusOf(RPM, { available: 0, exceeded: true, retryAfterMs: 1_200 });
    expect(draft(denied(refused, statusOf(TPM)))).toEqual({
      'Retry-After': '2',
      'retry-after-ms': '1200',
      'RateLimit-Policy': '"rpm";q=100;w=60, "tpm";q=10000;qu="tokens";w=60',
      RateLimit: '"rpm";r=0;t=2, "tpm";r=10000',
    });
  });

  test('a wait of a debt that takes millions of years has at most the 15 digits of an integer in a field', () => {
    const slow = Limit.custom('slow', { capacity: 1e12, refillAmount: 1, refillPeriodMs: 2_592_000_000 });
    const lines = draft(denied(statusOf(slow, { available: -3e14, exceeded: true, retryAfterMs: 7.8e23 })));
    const longest = '9'.repeat(15);
    expect(lines).toMatchObject({ 'Retry-After': longest, 'retry-after-ms': longest });
    expect(lines['RateLimit']).toBe(`"slow";r=0;t=${longest}`);
    expect(draft(granted(statusOf(slow, { available: -3e14 })))['RateLimit']).toBe(`"slow";r=0;t=${longest}`);
  });

  test('a denial that no wait helps has no Retry-After', () => {
    const impossible = statusOf(RPM, { exceeded: true, retryAfterMs: null });
    expect(draft(denied(impossible))).toEqual({
      'RateLimit-Policy': '"rpm";q=100;w=60',
      RateLimit: '"rpm";r=100',
    });
  });

  test('slots have the unit of concurrent requests and no window', () => {
    expect(draft(granted(statusOf(Limit.concurrent('slots', 4), { available: 3 })))).toEqual({
      'RateLimit-Policy': '"slots";q=4;qu="concurrent-requests"',
      RateLimit: '"slots";r=3',
    });
  });

  test('a debt is shown as nothing left', () => {
    expect(draft(granted(statusOf(RPM, { available: -20 })))['RateLimit']).toBe('"rpm";r=0;t=72');
  });

  test('of several levels with the same limit, the one that refused is shown', () => {
    const parent = statusOf(RPM, { entityId: 'proj-1', available: 5, exceeded: true, retryAfterMs: 3_000 });
    const child = statusOf(RPM, { available: 2 });
    const lines = Object.fromEntries(
      rateLimitHeaders(denied(child, parent), { format: 'draft-10', partitionKey: (id) => btoa(id) }),
    );
    expect(lines['RateLimit']).toBe(`"rpm";r=5;t=3;pk=:${btoa('proj-1')}:`);
    expect(lines['RateLimit-Policy']).toBe(`"rpm";q=100;w=60;pk=:${btoa('proj-1')}:`);
  });

  test('an unlimited limit has no header', () => {
    expect(draft(granted(statusOf(Limit.unlimited('tpm'))))).toEqual({});
  });
});

describe('the older headers', () => {
  test.each([
    ['draft-6', ''],
    ['x-ratelimit', 'X-'],
  ] as const)('%s describes the limit with the smallest part left', (format, prefix) => {
    const decision = granted(statusOf(RPM, { available: 90 }), statusOf(TPM, { available: 1_000 }));
    expect(Object.fromEntries(rateLimitHeaders(decision, { format }))).toEqual({
      [`${prefix}RateLimit-Limit`]: '10000',
      [`${prefix}RateLimit-Remaining`]: '1000',
      [`${prefix}RateLimit-Reset`]: '54',
    });
  });

  test('the format none still tells a denied client when to come back', () => {
    const refused = statusOf(RPM, { available: 0, exceeded: true, retryAfterMs: 600 });
    expect(rateLimitHeaders(denied(refused), { format: 'none' })).toEqual([
      ['Retry-After', '1'],
      ['retry-after-ms', '600'],
    ]);
  });
});

test('Retry-After is never earlier than the time of any limit, in every format', () => {
  const status = fc.record({ name: fc.constantFrom('rpm', 'tpm', 'slots'), wait: fc.nat(100_000), left: fc.integer() });
  fc.assert(
    fc.property(fc.array(status, { minLength: 1 }), fc.constantFrom(...HEADER_FORMATS), (rows, format) => {
      const statuses = rows.map(({ name, wait, left }) =>
        statusOf(name === 'slots' ? Limit.concurrent(name, 4) : Limit.perMinute(name, 100), {
          available: left,
          exceeded: wait > 0,
          retryAfterMs: wait,
        }),
      );
      const decision = denied(...statuses);
      if (decision.retryAfterMs === 0) return;
      const lines = Object.fromEntries(rateLimitHeaders(decision, { format }));
      const times = Array.from((lines['RateLimit'] ?? '').matchAll(/;t=(\d+)/g), ([, t]) => Number(t));
      const resets = Object.entries(lines).flatMap(([name, value]) => (name.endsWith('-Reset') ? [Number(value)] : []));
      expect(Number(lines['Retry-After'])).toBeGreaterThanOrEqual(Math.max(0, ...times, ...resets));
    }),
  );
});
