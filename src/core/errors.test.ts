import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ERRORS, errorTraits } from './error-codes.js';
import {
  AccessDenied,
  BackendUnavailable,
  EntityExists,
  EntityNotFound,
  HeadgateError,
  InfrastructureError,
  isHeadgateError,
  LeaseClosed,
  LeaseTokenInvalid,
  LimitsNotConfigured,
  NamespaceConflict,
  NamespaceNotFound,
  SchemaMismatch,
  ValidationError,
  VersionConflict,
} from './errors.js';
import { Limit } from './limit.js';
import { RateLimitExceeded } from './rate-limit-exceeded.js';

const status = {
  entityId: 'user-1',
  resource: 'gpt-4',
  limit: Limit.perMinute('rpm', 60),
  available: 2,
  requested: 5,
  exceeded: true,
  retryAfterMs: 3_000,
};
const denial = {
  statuses: [status],
  violations: [status],
  retryAfterMs: 3_000,
  reason: 'exhausted',
  decidedBy: 'store',
} as const;
const paused = { entityId: 'e', resource: null, until: null, reason: 'leaked' };
const revoked = { ...denial, statuses: [], violations: [], retryAfterMs: null, reason: 'paused', paused } as const;
const never = { ...denial, retryAfterMs: null, reason: 'impossible' } as const;

/** The table of the design: code, class, HTTP status, exit code, whether a retry helps, details. */
const table: readonly (readonly [string, HeadgateError, string, number, number, boolean, object])[] = [
  ['limit.exceeded', new RateLimitExceeded(denial), 'RateLimitExceeded', 429, 10, true, { retryAfterMs: 3_000 }],
  ['limit.impossible', new RateLimitExceeded(never), 'RateLimitExceeded', 422, 11, false, { retryAfterMs: null }],
  ['entity.paused', new RateLimitExceeded(revoked), 'RateLimitExceeded', 403, 12, false, { reason: 'paused', paused }],
  ['input.invalid', new ValidationError('f', 'x', 1), 'ValidationError', 400, 3, false, { field: 'f', expected: 'x' }],
  ['limits.missing', new LimitsNotConfigured('e', 'r'), 'LimitsNotConfigured', 409, 4, false, { entityId: 'e' }],
  ['lease.closed', new LeaseClosed('id', 'expired', 'extend'), 'LeaseClosed', 409, 5, false, { leaseId: 'id' }],
  ['lease.token-invalid', new LeaseTokenInvalid('why'), 'LeaseTokenInvalid', 400, 3, false, {}],
  ['entity.missing', new EntityNotFound('e'), 'EntityNotFound', 404, 4, false, { entityId: 'e' }],
  ['entity.exists', new EntityExists('e'), 'EntityExists', 409, 5, false, { entityId: 'e' }],
  ['entity.conflict', new VersionConflict('e', 'why'), 'VersionConflict', 409, 5, true, { entityId: 'e' }],
  [
    'namespace.missing',
    new NamespaceNotFound('n'),
    'NamespaceNotFound',
    404,
    4,
    false,
    { namespace: 'n', state: 'unregistered' },
  ],
  ['namespace.conflict', new NamespaceConflict('n', 'why'), 'NamespaceConflict', 409, 5, false, { namespace: 'n' }],
  ['schema.mismatch', new SchemaMismatch('m', 'do it'), 'SchemaMismatch', 503, 6, false, { command: 'do it' }],
  ['backend.unavailable', new BackendUnavailable('m', 'timeout'), 'BackendUnavailable', 503, 7, true, {}],
  ['backend.denied', new AccessDenied('m'), 'AccessDenied', 500, 8, false, {}],
  // These codes are answers of the server. A client throws them as `RemoteError`.
  ['access.missing', new HeadgateError('access.missing', 'm'), 'HeadgateError', 401, 8, false, {}],
  ['access.denied', new HeadgateError('access.denied', 'm'), 'HeadgateError', 403, 8, false, {}],
  ['route.missing', new HeadgateError('route.missing', 'm'), 'HeadgateError', 404, 4, false, {}],
  ['server.busy', new HeadgateError('server.busy', 'm'), 'HeadgateError', 503, 7, true, {}],
  ['route.method', new HeadgateError('route.method', 'm'), 'HeadgateError', 405, 3, false, {}],
  ['body.too-large', new HeadgateError('body.too-large', 'm'), 'HeadgateError', 413, 3, false, {}],
  ['server.error', new HeadgateError('server.error', 'm'), 'HeadgateError', 500, 1, false, {}],
  [
    'infrastructure.stack',
    new InfrastructureError('infrastructure.stack', 'm'),
    'InfrastructureError',
    500,
    9,
    false,
    {},
  ],
];

test.each(table)(
  'the error %s has the class, the statuses and the details of the design',
  (code, error, name, http, exit, retryable, details) => {
    expect(error).toBeInstanceOf(HeadgateError);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ code, name, httpStatus: http, exitCode: exit, retryable, ...details });
    expect(error.stack).toContain(name);
  },
);

test('the message of a pause has its end and its reason, and a denial by a limit has no field for it', () => {
  const until = new Date('2027-01-31T10:00:00Z');
  const told = new RateLimitExceeded({
    ...revoked,
    retryAfterMs: 5_000,
    paused: { ...paused, resource: 'gpt-4', until },
  });
  expect([told.code, told.retryAfterHeader]).toEqual(['limit.exceeded', '5']);
  expect(told.message).toBe('Paused: e on gpt-4 is paused until 2027-01-31T10:00:00.000Z: leaked');
  expect(new RateLimitExceeded(revoked).message).toBe('Paused: e is paused until it is resumed: leaked');
  expect(Object.keys(new RateLimitExceeded(denial).toJSON())).not.toContain('paused');
});

test('the table has every error code', () => {
  const tested = table.map(([code]) => code).filter((code) => !code.startsWith('infrastructure.'));
  expect(tested.toSorted()).toEqual(Object.keys(ERRORS).toSorted());
  expect(errorTraits('infrastructure.anything')).toEqual({ http: 500, exit: 9, retryable: false });
});

test.each(table)('the error %s as JSON has its code, message and details, and no stack', (code, error, name) => {
  const json = JSON.parse(JSON.stringify(error)) as Record<string, unknown>;
  expect(json).toMatchObject({ code, name, message: error.message });
  expect(JSON.stringify(json)).not.toContain('.test.ts');
  expect(json).not.toHaveProperty('stack');
  expect(error.toJSON()).toMatchObject(Object.fromEntries(Object.entries(error)));
});

test('an error keeps its cause, and its JSON has only the message of the cause', () => {
  const cause = new Error('socket hang up');
  const error = new BackendUnavailable('no answer', 'connection', { cause });
  expect(error.cause).toBe(cause);
  expect(error.toJSON()).toEqual({
    name: 'BackendUnavailable',
    code: 'backend.unavailable',
    kind: 'connection',
    message: 'no answer',
    cause: 'socket hang up',
  });
  expect(new AccessDenied('m', { cause: { code: 5 } }).toJSON()).toMatchObject({ cause: '{"code":5}' });
  expect(new AccessDenied('m').toJSON()).not.toHaveProperty('cause');
});

test('an infrastructure error is retryable if its constructor says so', () => {
  const retryable = new InfrastructureError('infrastructure.busy', 'm', { retryable: true });
  expect([retryable.retryable, retryable.exitCode]).toEqual([true, 9]);
  expect(isHeadgateError(retryable, 'infrastructure.busy')).toBe(true);
});

test('isHeadgateError recognises every class, with and without a code', () => {
  for (const [code, error] of table) {
    expect(isHeadgateError(error)).toBe(true);
    expect(isHeadgateError(error, code as 'input.invalid')).toBe(true);
    expect(isHeadgateError(error, code === 'limit.exceeded' ? 'lease.closed' : 'limit.exceeded')).toBe(false);
  }
});

test('isHeadgateError recognises an error of another copy of the package', () => {
  const error: unknown = Object.assign(new Error('closed'), {
    code: 'lease.closed',
    [Symbol.for('headgate.error')]: true,
  });
  expect(error).not.toBeInstanceOf(HeadgateError);
  expect([isHeadgateError(error), isHeadgateError(error, 'lease.closed')]).toEqual([true, true]);
  expect(isHeadgateError(error, 'limit.exceeded')).toBe(false);
});

test('isHeadgateError is false for every other value', () => {
  fc.assert(
    fc.property(fc.anything(), (value) => {
      expect(isHeadgateError(value)).toBe(false);
    }),
    { numRuns: 1_000 },
  );
  expect(isHeadgateError(Object.assign(new Error('m'), { code: 'lease.closed' }))).toBe(false);
});

test('the message of a denial names the limit, the level and the wait', () => {
  expect(new RateLimitExceeded(denial).message).toBe(
    'Rate limit exceeded: rpm:60/min of user-1 on gpt-4 has 2 left, 5 asked; retry in 3000 ms',
  );
  expect(new RateLimitExceeded(never).message).toContain('waiting does not help');
  const contended = { ...denial, violations: [], reason: 'contended' } as const;
  expect(new RateLimitExceeded(contended)).toMatchObject({ code: 'limit.exceeded' });
  expect(new RateLimitExceeded(contended).message).toContain('too many writers at once');
});

test('the Retry-After of a denial is in whole seconds, never too early and never 0', () => {
  fc.assert(
    fc.property(fc.nat({ max: 10_000_000 }), (retryAfterMs) => {
      const seconds = Number(new RateLimitExceeded({ ...denial, retryAfterMs }).retryAfterHeader);
      expect(Number.isInteger(seconds) && seconds >= 1).toBe(true);
      expect(seconds * 1_000).toBeGreaterThanOrEqual(retryAfterMs);
      if (seconds > 1) expect((seconds - 1) * 1_000).toBeLessThan(retryAfterMs);
    }),
    { numRuns: 1_000 },
  );
  expect(new RateLimitExceeded(never).retryAfterHeader).toBeNull();
});

test('a validation error names the expected and the given value', () => {
  const error = new ValidationError('consume.rpm', 'a whole number', -1);
  expect(error.message).toBe('Expected `consume.rpm` to be a whole number, got -1');
  expect(error.toJSON()).toMatchObject({ field: 'consume.rpm', expected: 'a whole number', got: '-1' });
});

test('a validation error shows every kind of value in fewer than 160 characters', () => {
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withNullPrototype: true, withDate: true }), (value) => {
      const { got } = new ValidationError('f', 'x', value);
      expect(typeof got).toBe('string');
      expect(got.length).toBeLessThan(160);
    }),
    { numRuns: 1_000 },
  );
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  const shown = (value: unknown): string => new ValidationError('f', 'x', value).got;
  expect(shown(circular)).toBe('[object Object]');
  expect(shown('x'.repeat(500))).toBe(`"${'x'.repeat(119)}… (502 characters)`);
  expect(shown(Symbol('a'))).toBe('Symbol(a)');
  expect(shown({ toJSON: () => undefined })).toBe('[object Object]');
});
