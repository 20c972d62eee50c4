import { expect, test } from 'vitest';
import { ASK, ASK_SLOT, LIMITS, openLimiter } from '../../../tests/support/models/open-limiter.js';
import { Limit } from '../../core/limit.js';
import { RateLimiter } from '../rate-limiter.js';

test('the default outage policy is block', async () => {
  const { limiter, store } = await openLimiter();
  store.start();
  await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject({ code: 'backend.unavailable', kind: 'connection' });
  await expect(limiter.acquire(ASK)).rejects.toMatchObject({ code: 'backend.unavailable' });
});

test('a call to a store that does not answer times out after callMs', async () => {
  const { limiter, store, clock } = await openLimiter();
  await limiter.acquire(ASK);
  store.start({ mode: 'hang' });
  const asked = expect(limiter.acquire(ASK)).rejects.toMatchObject({ code: 'backend.unavailable', kind: 'timeout' });
  await clock.advance(1_000);
  await asked;
  expect(clock.sleepers).toBe(0);
});

test('the config read and the write together stay within acquireMs', async () => {
  const { limiter, store, clock } = await openLimiter({ timeouts: { callMs: 1_000, acquireMs: 1_500 } });
  await limiter.acquire(ASK);
  await clock.advance(60_000);
  store.start({ mode: 'hang' });
  const startMs = clock.now();
  const asked = limiter.acquire(ASK).catch(() => clock.now() - startMs);
  await clock.advance(5_000);
  expect(await asked).toBe(1_500);
});

test('the policy allow grants, reports decidedBy open, and its lease writes nothing', async () => {
  const { limiter, store } = await openLimiter({ onUnavailable: 'allow' });
  store.start();
  const decision = await limiter.tryAcquire(ASK_SLOT);
  if (!decision.granted) throw new Error('denied');
  expect(decision).toMatchObject({ decidedBy: 'open', statuses: [] });
  const before = store.calls.length;
  const { lease } = decision;
  await lease.adjust({ tpm: 100 });
  await lease.settle({ rpm: 2 });
  await lease.extend();
  await lease.release();
  await lease.commit();
  expect(lease).toMatchObject({ decidedBy: 'open', state: 'committed', expiresAt: null });
  expect(lease.consumed).toEqual({ rpm: 2, tpm: 600, slots: 1 });
  expect(store.calls.length).toBe(before);
});

test('the policy local limits within this process by the last known limits, and reports decidedBy fallback', async () => {
  const { limiter, store } = await openLimiter({ onUnavailable: 'local' });
  await limiter.config.setEntity('user-1', 'gpt-4', { limits: [Limit.perMinute('rpm', 3)] });
  await limiter.acquire({ ...ASK, consume: { rpm: 1 } });
  store.start();
  const decisions = [];
  for (let call = 0; call < 4; call++) decisions.push(await limiter.tryAcquire({ ...ASK, consume: { rpm: 1 } }));
  expect(decisions.map(({ granted, decidedBy }) => [granted, decidedBy])).toEqual([
    [true, 'fallback'],
    [true, 'fallback'],
    [true, 'fallback'],
    [false, 'fallback'],
  ]);
});

test('the policy local keeps reserves, and lets asks pass a shadow', async () => {
  const { limiter, store } = await openLimiter({ onUnavailable: 'local' });
  const limits = [Limit.perMinute('rpm', 4, { reserve: { batch: 0.5 } }), Limit.perMinute('tpm', 1, { shadow: true })];
  await limiter.config.setEntity('user-1', 'gpt-4', { limits });
  await limiter.acquire({ ...ASK, consume: { rpm: 0 } });
  store.start();
  const granted: boolean[] = [];
  for (const priority of ['batch', 'batch', 'batch', undefined] as const) {
    const request = { ...ASK, consume: { rpm: 1, tpm: 1 }, ...(priority === undefined ? {} : { priority }) };
    granted.push((await limiter.tryAcquire(request)).granted);
  }
  expect(granted).toEqual([true, true, false, true]);
});

test('local slots are given back to this process, without a call to the store', async () => {
  const { limiter, store } = await openLimiter({ onUnavailable: 'local' });
  store.start();
  const leases = [await limiter.acquire(ASK_SLOT), await limiter.acquire(ASK_SLOT)];
  expect(await limiter.tryAcquire(ASK_SLOT)).toMatchObject({ granted: false, decidedBy: 'fallback' });
  store.end();
  await leases[0]?.commit();
  expect(await limiter.available(ASK)).toEqual({ rpm: 60, tpm: 6_000, slots: 2 });
});

test('the policy local uses the last known chain of parents', async () => {
  const { limiter, store } = await openLimiter({ onUnavailable: 'local' });
  await limiter.entities.create({ id: 'proj-1' });
  await limiter.entities.create({ id: 'user-1', parentId: 'proj-1', cascade: true });
  await limiter.acquire(ASK);
  store.start();
  const decision = await limiter.tryAcquire(ASK);
  expect(decision.statuses.map(({ entityId }) => entityId)).toEqual(['user-1', 'user-1', 'proj-1', 'proj-1']);
});

test('the policy local blocks if no limits are known', async () => {
  const { limiter, store } = await openLimiter({ onUnavailable: 'local', limits: [] });
  store.start();
  await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject({ code: 'backend.unavailable' });
});

test('the policy of the call wins over the policy of open, which wins over the stored policy', async () => {
  const { limiter, store } = await openLimiter({ onUnavailable: 'block' });
  await limiter.config.setSystem({ onUnavailable: 'local' });
  await limiter.acquire(ASK);
  store.start();
  expect(await limiter.tryAcquire({ ...ASK, onUnavailable: 'allow' })).toMatchObject({ decidedBy: 'open' });
  await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject({ code: 'backend.unavailable' });
});

test('the last known stored policy applies if neither the call nor open has one', async () => {
  const { limiter, store } = await openLimiter();
  await limiter.config.setSystem({ onUnavailable: 'allow' });
  await limiter.acquire(ASK);
  store.start();
  expect(await limiter.tryAcquire({ ...ASK, entityId: 'someone-new' })).toMatchObject({ decidedBy: 'open' });
});

test.each(['config.readFor', 'consume'])(
  'the policy applies to a failing %s, also in the first acquire',
  async (call) => {
    const { limiter, store } = await openLimiter({ onUnavailable: 'allow' });
    store.start({ only: [call] });
    expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'open' });
  },
);

test.each([
  ['a programming error', new TypeError('x is not a function')],
  ['an error without a code', new Error('what')],
])('the outage policy does not apply to %s', async (_, error) => {
  const { limiter, store } = await openLimiter({ onUnavailable: 'allow' });
  store.start({ only: ['consume'], error });
  await expect(limiter.tryAcquire(ASK)).rejects.toBe(error);
});

test('bad input is refused during an outage', async () => {
  const { limiter, store } = await openLimiter({ onUnavailable: 'allow' });
  store.start();
  await expect(limiter.tryAcquire({ ...ASK, consume: { rpm: -1 } })).rejects.toMatchObject({ code: 'input.invalid' });
  await expect(limiter.tryAcquire({ ...ASK, entityId: 'a b' })).rejects.toMatchObject({ code: 'input.invalid' });
});

test('an expired config is used during an outage, and fetched again afterwards', async () => {
  const { limiter, store, clock } = await openLimiter({ limits: [] });
  await limiter.config.setResource('gpt-4', { limits: LIMITS });
  await limiter.acquire(ASK);
  await clock.advance(60_000);
  store.start({ only: ['config.readFor'] });
  expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'store' });
  store.end();
  const before = store.calls.length;
  await limiter.acquire(ASK);
  expect(store.calls.slice(before)).toEqual(['config.readFor', 'consume']);
});

test('tokens that were granted after the caller timed out are given back', async () => {
  const { limiter, store, clock } = await openLimiter({ onUnavailable: 'allow' });
  const answer = withResolvers();
  const { consume } = store.backend;
  Object.assign(store.backend, {
    consume: async (...args: Parameters<typeof consume>) => {
      await answer.promise;
      return consume(...args);
    },
  });
  const asked = limiter.tryAcquire(ASK_SLOT);
  await clock.advance(1_000);
  expect(await asked).toMatchObject({ decidedBy: 'open' });
  answer.resolve();
  await clock.advance(0);
  expect(await limiter.available(ASK)).toEqual({ rpm: 60, tpm: 6_000, slots: 2 });
});

test.each([
  ['allow', { granted: true, decidedBy: 'open' }],
  ['local', { granted: true, decidedBy: 'fallback' }],
] as const)(
  'a limiter without an open store decides by the policy %s, and opens the store once it answers',
  async (onUnavailable, expected) => {
    const { store, clock } = await openLimiter();
    const limiter = new RateLimiter(store.backend, { limits: LIMITS, clock, onUnavailable });
    store.start();
    expect(await limiter.tryAcquire(ASK)).toMatchObject(expected);
    store.end();
    expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'store' });
  },
);

test('a limiter without an open store runs work under the policy', async () => {
  const { store, clock } = await openLimiter();
  const limiter = new RateLimiter(store.backend, { limits: LIMITS, clock, onUnavailable: 'allow' });
  store.start();
  expect(await limiter.run(ASK, (lease) => lease.decidedBy)).toBe('open');
});

test('a limiter without an open store keeps its local limits from one call to the next', async () => {
  const { store, clock } = await openLimiter();
  const limiter = new RateLimiter(store.backend, { limits: LIMITS, clock, onUnavailable: 'local' });
  store.start();
  await limiter.acquire({ ...ASK, consume: { rpm: 60 } });
  expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: false, decidedBy: 'fallback' });
});

test('a limiter without an open store blocks by default, and refuses bad input and a missing namespace', async () => {
  const { store, clock } = await openLimiter();
  const lenient = { limits: LIMITS, clock, onUnavailable: 'allow' } as const;
  await expect(new RateLimiter(store.backend, { ...lenient, namespace: 'acme' }).tryAcquire(ASK)).rejects.toMatchObject(
    {
      code: 'namespace.missing',
    },
  );
  store.start();
  const strict = new RateLimiter(store.backend, { limits: LIMITS, clock });
  await expect(strict.tryAcquire(ASK)).rejects.toMatchObject({ code: 'backend.unavailable' });
  const limiter = new RateLimiter(store.backend, lenient);
  await expect(limiter.tryAcquire({ ...ASK, consume: { rpm: -1 } })).rejects.toMatchObject({ code: 'input.invalid' });
  await expect(limiter.tryAcquire({ ...ASK, entityId: 'a b' })).rejects.toMatchObject({ code: 'input.invalid' });
});

test('the last known limits are used by all callers while the config cannot be read', async () => {
  const { limiter, store, clock } = await openLimiter({ limits: [] });
  await limiter.config.setResource('gpt-4', { limits: LIMITS });
  await limiter.acquire(ASK);
  await clock.advance(60_000);
  store.start({ only: ['config.readFor'] });
  const decisions = await Promise.all([limiter.tryAcquire(ASK), limiter.tryAcquire(ASK), limiter.tryAcquire(ASK)]);
  expect(decisions).toMatchObject([{ granted: true }, { granted: true }, { granted: true }]);
});

test('the last known limits are kept after an administrative change of this process', async () => {
  const { limiter, store } = await openLimiter({ limits: [], onUnavailable: 'local' });
  await limiter.config.setResource('gpt-4', { limits: LIMITS });
  await limiter.acquire(ASK);
  await limiter.entities.create({ id: 'unrelated' });
  store.start();
  expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'fallback' });
});

test('the last known limits decide for a call that times out in a waiting line', async () => {
  const { limiter, store, clock } = await openLimiter({ onUnavailable: 'local' });
  await limiter.acquire({ ...ASK, consume: { rpm: 60 } });
  store.start();
  await limiter.acquire({ ...ASK, consume: { rpm: 60 } });
  const first = limiter.tryAcquire({ ...ASK, consume: { rpm: 4 }, wait: { timeoutMs: 5_000 } });
  const second = limiter.tryAcquire({ ...ASK, consume: { rpm: 2 }, wait: { timeoutMs: 500 } });
  await clock.advance(5_000);
  expect(await second).toMatchObject({ granted: false, decidedBy: 'fallback' });
  expect(await first).toMatchObject({ granted: true, decidedBy: 'fallback' });
});

test('what a local lease gives back goes to the call that waits for it', async () => {
  const { limiter, store, clock } = await openLimiter({ onUnavailable: 'local' });
  await limiter.acquire(ASK);
  store.start();
  const lease = await limiter.acquire({ ...ASK, consume: { rpm: 60 } });
  const decisions: unknown[] = [];
  const waiting = limiter.tryAcquire({ ...ASK, consume: { rpm: 60 }, wait: { timeoutMs: 60_000 } });
  void waiting.then((decision) => decisions.push(decision));
  await clock.advance(0);
  await lease.rollback();
  await clock.advance(0);
  expect(decisions).toMatchObject([{ granted: true, decidedBy: 'fallback' }]);
});

test('a closed store is not an outage', async () => {
  const { limiter, store } = await openLimiter({ onUnavailable: 'allow' });
  store.start({ kind: 'closed' });
  await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject({ kind: 'closed' });
});

async function broken() {
  const opened = await openLimiter();
  opened.store.start();
  for (let call = 0; call < 5; call++) await opened.limiter.tryAcquire(ASK).catch(() => {});
  return opened;
}

test('the breaker opens after five failures in a row, and then answers without the store', async () => {
  const { limiter, store } = await broken();
  const before = store.calls.length;
  await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject({ kind: 'breaker-open' });
  expect(store.calls.length).toBe(before);
});

test('the breaker lets one probe through each second', async () => {
  const { limiter, store, clock } = await broken();
  await clock.advance(1_000);
  const before = store.calls.length;
  await Promise.allSettled([limiter.tryAcquire(ASK), limiter.tryAcquire(ASK), limiter.tryAcquire(ASK)]);
  expect(store.calls.length - before).toBe(1);
});

test('the breaker closes with the first probe that is answered', async () => {
  const { limiter, store, clock } = await broken();
  store.end();
  await clock.advance(1_000);
  for (let call = 0; call < 3; call++) expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true });
});

test('throttling does not open the breaker', async () => {
  const { limiter, store } = await openLimiter();
  store.start({ kind: 'throttled' });
  for (let call = 0; call < 8; call++)
    await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject({ kind: 'throttled' });
});

test.each(['config.readFor', 'consume'])(
  'contention of %s does not open the breaker, and denies whatever the policy',
  async (call) => {
    const { limiter, store } = await openLimiter({ onUnavailable: 'allow' });
    store.start({ kind: 'contended', only: [call] });
    for (let asked = 0; asked < 8; asked++) {
      expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: false, reason: 'contended', retryAfterMs: 100 });
    }
  },
);

test('a success resets the failure count of the breaker', async () => {
  const { limiter, store } = await openLimiter();
  for (let round = 0; round < 3; round++) {
    store.start({ only: ['consume'], calls: 4 });
    for (let call = 0; call < 4; call++) await limiter.tryAcquire(ASK).catch(() => {});
    expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true });
  }
});

test('an error that the store answers resets the failure count of the breaker', async () => {
  const { limiter, store } = await openLimiter();
  for (let round = 0; round < 6; round++) {
    store.start({ only: ['consume'], calls: 1 });
    await limiter.tryAcquire(ASK).catch(() => {});
    await expect(limiter.entities.delete('missing')).rejects.toMatchObject({ code: 'entity.missing' });
  }
  expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true });
});

test('a ping reaches the store while the breaker is open, and never throws', async () => {
  const { limiter, store } = await broken();
  expect(await limiter.ping()).toMatchObject({ ok: false, error: { code: 'backend.unavailable' } });
  store.end();
  expect(await limiter.ping()).toEqual({ ok: true, latencyMs: 0 });
});

test('a call that is aborted rejects with the reason of its signal, and what was taken for it is given back', async () => {
  const { limiter, store, clock } = await openLimiter();
  const stop = new AbortController();
  const { consume } = store.backend;
  const slow: typeof consume = async (...args) => {
    await clock.sleep(100);
    return consume(...args);
  };
  Object.assign(store.backend, { consume: slow });
  const asked = expect(limiter.acquire({ ...ASK_SLOT, signal: stop.signal })).rejects.toThrow('gone');
  await clock.advance(50);
  stop.abort(new Error('gone'));
  await asked;
  await clock.advance(50);
  expect(await limiter.available(ASK)).toEqual({ rpm: 60, tpm: 6_000, slots: 2 });
});

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}
