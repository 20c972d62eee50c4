import { afterEach, expect, test, vi } from 'vitest';
import { distantBackend } from '../../tests/support/models/distant-backend.js';
import { ASK, ASK_SLOT, LIMITS, openLimiter } from '../../tests/support/models/open-limiter.js';
import { memory } from '../backends/embedded/memory.js';
import { RateLimitExceeded } from '../core/rate-limit-exceeded.js';
import { Limit } from '../core/limit.js';
import { fakeClock } from '../testing/fake-clock.js';
import type { DecisionEvent } from './acquire/decision-event.js';
import { RateLimiter } from './rate-limiter.js';

afterEach(() => {
  vi.unstubAllEnvs();
});

test('open accepts options, a store, both, or no argument', async () => {
  const stores = [
    await RateLimiter.open(),
    await RateLimiter.open('memory:'),
    await RateLimiter.open({ limits: LIMITS }),
    await RateLimiter.open('memory:', { limits: LIMITS }),
    await RateLimiter.open(memory(), { limits: LIMITS }),
  ];
  for (const limiter of stores) expect(await limiter.ping()).toMatchObject({ ok: true });
});

test('each open of memory: creates a separate store', async () => {
  const [a, b] = [await RateLimiter.open('memory:', { limits: LIMITS }), await RateLimiter.open({ limits: LIMITS })];
  await a.acquire({ ...ASK, consume: { rpm: 60 } });
  expect(await b.available(ASK)).toMatchObject({ rpm: 60 });
});

test('a memory store starts with the requested namespace', async () => {
  const limiter = await RateLimiter.open({ limits: LIMITS, namespace: 'acme' });
  expect((await limiter.namespaces.list()).items).toMatchObject([{ name: 'acme', status: 'active' }]);
});

test('open writes nothing and refuses a namespace that the store does not have', async () => {
  const opened = RateLimiter.open(memory(), { limits: LIMITS, namespace: 'acme' });
  await expect(opened).rejects.toMatchObject({ code: 'namespace.missing', namespace: 'acme' });
});

test('open refuses an unknown store', async () => {
  await expect(RateLimiter.open('redis://x')).rejects.toMatchObject({ code: 'input.invalid', field: 'store' });
});

test.each([5, [], 'namespace'])('open refuses %j as the options of a store', async (options) => {
  await expect(RateLimiter.open('memory:', options as never)).rejects.toMatchObject({ field: 'options' });
});

test('open reads HEADGATE_URL, HEADGATE_NAMESPACE and HEADGATE_LEASE_TTL_MS', async () => {
  vi.stubEnv('HEADGATE_NAMESPACE', 'from-env');
  vi.stubEnv('HEADGATE_LEASE_TTL_MS', '9000');
  const limiter = await RateLimiter.open({ limits: LIMITS });
  expect((await limiter.namespaces.list()).items).toMatchObject([{ name: 'from-env' }]);
  const { expiresAt } = await limiter.acquire(ASK_SLOT);
  expect((expiresAt?.getTime() ?? 0) - Date.now()).toBeLessThanOrEqual(9_000);
  vi.stubEnv('HEADGATE_URL', 'nonsense:');
  await expect(RateLimiter.open()).rejects.toMatchObject({ field: 'store' });
  vi.stubEnv('HEADGATE_LEASE_TTL_MS', 'soon');
  await expect(RateLimiter.open()).rejects.toMatchObject({ field: 'leaseTtlMs', got: '"soon"' });
});

test.each([
  [{ leaseTtlMs: 10 }, 'leaseTtlMs'],
  [{ onExpiry: 'forget' }, 'onExpiry'],
  [{ onUnavailable: 'pray' }, 'onUnavailable'],
  [{ timeouts: { callMs: 0 } }, 'timeouts.callMs'],
  [{ configCacheMs: -1 }, 'configCacheMs'],
  [{ limits: 'rpm:60/min' }, 'limits'],
  [{ namespace: 'a b' }, 'namespace'],
  [{ timeouts: 5 }, 'timeouts'],
  [{ clock: {} }, 'clock.now'],
  [{ clock: { now: Date.now, sleep: 5 } }, 'clock.sleep'],
  [{ onEvent: 5 }, 'onEvent'],
  [{ onError: 'log' }, 'onError'],
])('open refuses %j', async (options, field) => {
  await expect(RateLimiter.open(options as never)).rejects.toMatchObject({ code: 'input.invalid', field });
});

test('the constructor does no I/O: the first call opens the store', async () => {
  const { store } = await openLimiter();
  const before = store.calls.length;
  const limiter = new RateLimiter(store.backend, { limits: LIMITS });
  expect(store.calls.length).toBe(before);
  expect((await limiter.acquire(ASK)).state).toBe('open');
  expect(store.calls.slice(before)).toEqual(['open', 'namespaces.read', 'config.readFor', 'consume']);
});

test('after an open that failed, the next call tries again', async () => {
  const { store } = await openLimiter();
  const limiter = new RateLimiter(store.backend, { limits: LIMITS });
  store.start({ calls: 1 });
  await expect(limiter.acquire(ASK)).rejects.toMatchObject({ code: 'backend.unavailable' });
  expect((await limiter.acquire(ASK)).state).toBe('open');
});

test.each([new URL('file:///x'), null, new Map()])(
  'open refuses %o and does not treat it as options',
  async (store) => {
    await expect(RateLimiter.open(store as never)).rejects.toMatchObject({ code: 'input.invalid', field: 'store' });
  },
);

test('reading and clearing the config cache does not open the store', async () => {
  const { store } = await openLimiter();
  const before = store.calls.length;
  const limiter = new RateLimiter(store.backend, { limits: LIMITS });
  expect(limiter.config.cache.stats()).toMatchObject({ entries: 0 });
  limiter.config.cache.clear();
  expect(store.calls.length).toBe(before);
});

test('a ping opens the store, never throws, and reports a closed limiter', async () => {
  const limiter = new RateLimiter(memory(), { limits: LIMITS });
  expect(await limiter.ping(null as never)).toMatchObject({ ok: true });
  await limiter.close();
  expect(await limiter.ping()).toMatchObject({ ok: false, error: { kind: 'closed' } });
});

test("the registry works although the limiter's own namespace is deleted", async () => {
  const store = memory();
  const limiter = await RateLimiter.open(store, { limits: LIMITS });
  await limiter.acquire(ASK);
  await limiter.namespaces.delete('default');
  const later = new RateLimiter(store, { limits: LIMITS });
  await expect(later.acquire(ASK)).rejects.toMatchObject({ code: 'namespace.missing' });
  await later.namespaces.recover('default');
  expect(await later.available(ASK)).toMatchObject({ rpm: 59 });
});

test('a closed limiter refuses calls also under the policy allow, and close can be repeated', async () => {
  const { limiter, store } = await openLimiter({ onUnavailable: 'allow' });
  await limiter.close();
  await limiter.close();
  await expect(limiter.acquire(ASK)).rejects.toMatchObject({ code: 'backend.unavailable', kind: 'closed' });
  expect(store.calls.filter((call) => call === 'close')).toHaveLength(1);
});

test('closing a limiter of another namespace leaves the store open', async () => {
  const { limiter } = await openLimiter();
  await limiter.namespaces.register('acme');
  const acme = await limiter.in('acme');
  await acme.close();
  expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true });
});

test('a closed limiter of another namespace opens no further namespaces, and its owner still does', async () => {
  const { limiter } = await openLimiter();
  await limiter.namespaces.register('acme');
  const acme = await limiter.in('acme');
  await acme.close();
  await expect(acme.in('default')).rejects.toMatchObject({ kind: 'closed' });
  expect(await (await limiter.in('acme')).tryAcquire(ASK)).toMatchObject({ granted: true });
});

test('a grant shows the available tokens', async () => {
  const { limiter } = await openLimiter();
  const decision = await limiter.tryAcquire(ASK);
  expect(decision).toMatchObject({
    granted: true,
    decidedBy: 'store',
    statuses: [
      { entityId: 'user-1', resource: 'gpt-4', limit: LIMITS[0], available: 59, requested: 1, exceeded: false },
      { entityId: 'user-1', resource: 'gpt-4', limit: LIMITS[1], available: 5_500, requested: 500, retryAfterMs: 0 },
    ],
  });
});

test('a denial shows which limit refused, how much is missing, and the wait', async () => {
  const { limiter } = await openLimiter();
  await limiter.acquire({ ...ASK, consume: { rpm: 60, tpm: 5_800 } });
  const decision = await limiter.tryAcquire({ ...ASK, consume: { rpm: 2, tpm: 500 } });
  expect(decision).toMatchObject({
    granted: false,
    reason: 'exhausted',
    retryAfterMs: 3_000,
    violations: [
      { limit: LIMITS[0], available: 0, requested: 2, exceeded: true, retryAfterMs: 2_000 },
      { limit: LIMITS[1], available: 200, requested: 500, exceeded: true, retryAfterMs: 3_000 },
    ],
  });
});

test('a denial of an impossible ask has no wait', async () => {
  const { limiter } = await openLimiter();
  expect(await limiter.tryAcquire({ ...ASK, consume: { rpm: 61 } })).toMatchObject({
    granted: false,
    reason: 'impossible',
    retryAfterMs: null,
    violations: [{ retryAfterMs: null }],
  });
});

test('a denial as an error has a readable message and the Retry-After header', async () => {
  const { limiter } = await openLimiter();
  await limiter.acquire({ ...ASK, consume: { rpm: 60 } });
  const error = await limiter.acquire({ ...ASK, consume: { rpm: 2 } }).catch((thrown: unknown) => thrown);
  if (!(error instanceof RateLimitExceeded)) throw error;
  expect(error.message).toBe(
    'Rate limit exceeded: rpm:60/min of user-1 on gpt-4 has 0 left, 2 asked; retry in 2000 ms',
  );
  expect([error.retryAfterHeader, error.httpStatus, error.exitCode]).toEqual(['2', 429, 10]);
});

test('every decision reaches onDecision, and an exception there does not affect it', async () => {
  const events: DecisionEvent[] = [];
  const onDecision = (event: DecisionEvent): void => {
    events.push(event);
    throw new Error('observer broke');
  };
  const { limiter, errors } = await openLimiter({ onDecision });
  await limiter.acquire(ASK);
  await limiter.tryAcquire({ ...ASK, consume: { rpm: 60 } });
  expect(events).toMatchObject([
    {
      namespace: 'default',
      entityId: 'user-1',
      consume: ASK.consume,
      granted: true,
      reason: null,
      decidedBy: 'store',
    },
    { granted: false, reason: 'exhausted', retryAfterMs: 1_000 },
  ]);
  expect(errors).toMatchObject([{ where: 'onDecision' }, { where: 'onDecision' }]);
});

test('listeners that are async and fail are reported, and do not end the process', async () => {
  const fail = (what: string) => (() => Promise.reject(new Error(what))) as () => void;
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const { limiter, errors } = await openLimiter({ onDecision: fail('onDecision'), onEvent: fail('onEvent') });
  await limiter.acquire(ASK);
  await vi.waitFor(() => expect(errors).toHaveLength(2));
  expect(errors.map(({ where }) => where).toSorted()).toEqual(['onDecision', 'onEvent']);
  const failing = await openLimiter({ onDecision: fail('onDecision'), onError: fail('onError') });
  await failing.limiter.acquire(ASK);
  await vi.waitFor(() => expect(warned).toHaveBeenCalledWith('onError threw: Error: onError', 'HeadgateWarning'));
  warned.mockRestore();
});

test('a limit with a default cost is taken also when the ask does not name it', async () => {
  const { limiter } = await openLimiter({
    limits: [Limit.perMinute('rpm', 60, { cost: 1 }), Limit.perMinute('tpm', 100)],
  });
  const lease = await limiter.acquire({ entityId: 'a', resource: 'r' });
  expect(lease.consumed).toEqual({ rpm: 1 });
  expect((await limiter.acquire({ entityId: 'a', resource: 'r', consume: { rpm: 0, tpm: 5 } })).consumed).toEqual({
    rpm: 0,
    tpm: 5,
  });
});

test('a call that opens the store takes what it asked for, although its caller has changed the request since', async () => {
  const limiter = new RateLimiter(memory(), { limits: LIMITS });
  const request = { ...ASK, consume: { rpm: 3 } };
  const leases = [limiter.acquire(request)];
  request.entityId = 'user-2';
  request.consume.rpm = 1;
  leases.push(limiter.acquire(request));
  expect(await Promise.all(leases)).toMatchObject([
    { entityId: 'user-1', consumed: { rpm: 3 } },
    { entityId: 'user-2', consumed: { rpm: 1 } },
  ]);
});

test('a call keeps its request until a distant store has answered, although its caller has changed the object since', async () => {
  const clock = fakeClock();
  const told: unknown[] = [];
  const limiter = await RateLimiter.open(distantBackend(memory(), clock, 20).backend, {
    limits: LIMITS,
    clock,
    onDecision: ({ entityId, resource, consume }) => told.push([entityId, resource, consume]),
  });
  const request = { ...ASK, consume: { rpm: 61 } };
  const first = limiter.tryAcquire(request);
  Object.assign(request, { entityId: 'user-2', resource: 'gpt-5' });
  request.consume.rpm = 1;
  const second = limiter.tryAcquire(request);
  await clock.advance(20);
  expect((await first).statuses).toMatchObject([{ entityId: 'user-1', resource: 'gpt-4', requested: 61 }]);
  expect((await second).statuses).toMatchObject([{ entityId: 'user-2', resource: 'gpt-5', requested: 1 }]);
  expect(told).toEqual([
    ['user-1', 'gpt-4', { rpm: 61 }],
    ['user-2', 'gpt-5', { rpm: 1 }],
  ]);
});

test('charges and pauses keep their requests, although their caller has changed the objects since', async () => {
  const { limiter } = await openLimiter();
  const charge = { entityId: 'user-1', resource: 'gpt-4', amounts: { rpm: 10 }, id: 'a' };
  const paused = { entityId: 'user-1', reason: 'revoked', forMs: 'forever' as const };
  const calls: Promise<unknown>[] = [limiter.charge(charge), limiter.pause(paused)];
  Object.assign(charge, { entityId: 'user-2', id: 'b' });
  charge.amounts.rpm = 20;
  paused.entityId = 'user-2';
  calls.push(limiter.charge(charge), limiter.pause(paused));
  await Promise.all(calls);
  expect(await limiter.available({ entityId: 'user-1', resource: 'gpt-4' })).toMatchObject({ rpm: 50 });
  expect(await limiter.available({ entityId: 'user-2', resource: 'gpt-4' })).toMatchObject({ rpm: 40 });
  for (const entityId of ['user-1', 'user-2']) {
    expect(await limiter.tryAcquire({ ...ASK, entityId })).toMatchObject({ reason: 'paused' });
  }
});

test('per-call limits have a separate bucket, and its usage counts for the resource', async () => {
  const { limiter } = await openLimiter();
  const own = { ...ASK, consume: { rpm: 1 }, limits: [Limit.perMinute('rpm', 2)] };
  await limiter.acquire(own);
  await limiter.acquire(own);
  expect(await limiter.tryAcquire(own)).toMatchObject({ granted: false, violations: [{ resource: 'gpt-4' }] });
  expect(await limiter.available(ASK)).toMatchObject({ rpm: 60 });
  expect((await limiter.usage.query({ ...ASK, window: 'hourly' })).items).toMatchObject([
    { tokens: { rpm: 2 }, acquires: 2 },
  ]);
});

test('a limit with capacity 0 always denies, except an ask for 0', async () => {
  const { limiter } = await openLimiter({ limits: [Limit.perMinute('rpm', 0)] });
  expect(await limiter.tryAcquire({ ...ASK, consume: { rpm: 1 } })).toMatchObject({ reason: 'impossible' });
  expect(await limiter.tryAcquire({ ...ASK, consume: { rpm: 0 } })).toMatchObject({ granted: true });
});

test('memory in production warns once', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  vi.stubEnv('NODE_ENV', 'production');
  await RateLimiter.open({ limits: LIMITS });
  await RateLimiter.open({ limits: LIMITS });
  expect(warned).toHaveBeenCalledTimes(1);
  warned.mockRestore();
});
