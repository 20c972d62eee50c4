import { expect, test, vi } from 'vitest';
import { ASK, ASK_SLOT, LIMITS, openLimiter } from '../../../tests/support/models/open-limiter.js';

import { Limit } from '../../core/limit.js';

test('adjust adds to what was taken and may cause debt', async () => {
  const { limiter } = await openLimiter();
  const lease = await limiter.acquire(ASK);
  await lease.adjust({ tpm: 7_000 });
  expect(lease.consumed).toEqual({ rpm: 1, tpm: 7_500 });
  expect(await limiter.available(ASK)).toEqual({ rpm: 59, tpm: -1_500, slots: 2 });
});

test('adjust gives part of what was taken back', async () => {
  const { limiter } = await openLimiter();
  const lease = await limiter.acquire(ASK);
  await lease.adjust({ tpm: -400 });
  expect(await limiter.available(ASK)).toEqual({ rpm: 59, tpm: 5_900, slots: 2 });
});

test('adjust accepts a limit that the acquire did not name', async () => {
  const { limiter } = await openLimiter();
  const lease = await limiter.acquire({ ...ASK, consume: { rpm: 1 } });
  await lease.adjust({ tpm: 1_000 });
  expect(lease.consumed).toEqual({ rpm: 1, tpm: 1_000 });
  expect(await limiter.available(ASK)).toMatchObject({ tpm: 5_000 });
});

test('adjust refuses to give back more than was taken', async () => {
  const { limiter } = await openLimiter();
  const lease = await limiter.acquire(ASK);
  await expect(lease.adjust({ tpm: -501 })).rejects.toMatchObject({ code: 'input.invalid', field: 'deltas.tpm' });
  expect(await limiter.available(ASK)).toMatchObject({ tpm: 5_500 });
});

test('adjust refuses slots, and names the method to use', async () => {
  const { limiter } = await openLimiter();
  const lease = await limiter.acquire(ASK_SLOT);
  await expect(lease.adjust({ slots: -1 })).rejects.toThrow(/release\(\)/);
});

test.each([{ tpm: 1.5 }, { tpm: undefined }, { tpm: Number.NaN }, { tpm: 2e12 }, { nope: 1 }])(
  'adjust refuses %j and changes nothing',
  async (deltas) => {
    const { limiter } = await openLimiter();
    const lease = await limiter.acquire(ASK);
    await expect(lease.adjust(deltas as Record<string, number>)).rejects.toMatchObject({ code: 'input.invalid' });
    expect(lease.consumed).toEqual({ rpm: 1, tpm: 500 });
  },
);

test('concurrent adjusts add up', async () => {
  const { limiter } = await openLimiter();
  const lease = await limiter.acquire(ASK);
  await Promise.all([lease.adjust({ tpm: 100 }), lease.adjust({ tpm: 200 }), lease.adjust({ tpm: -50 })]);
  expect(lease.consumed).toEqual({ rpm: 1, tpm: 750 });
});

test('settle states the total, so it can be repeated', async () => {
  const { limiter } = await openLimiter();
  const lease = await limiter.acquire(ASK);
  await lease.settle({ tpm: 900 });
  await lease.settle({ tpm: 900 });
  expect(lease.state).toBe('open');
  expect(await limiter.available(ASK)).toMatchObject({ tpm: 5_100 });
});

test('settle does not change limits that are not named', async () => {
  const { limiter } = await openLimiter();
  const lease = await limiter.acquire(ASK);
  await lease.settle({ tpm: 0 });
  expect(lease.consumed).toEqual({ rpm: 1, tpm: 0 });
});

test('settle accepts a limit that was added after the grant, and rollback gives it back', async () => {
  const { limiter } = await openLimiter();
  const lease = await limiter.acquire(ASK);
  await limiter.config.setResource('gpt-4', { limits: [...LIMITS, Limit.perDay('usd', 100)] });
  await lease.settle({ usd: 30 });
  expect(await limiter.available(ASK)).toMatchObject({ usd: 70 });
  await lease.rollback();
  expect(await limiter.available(ASK)).toMatchObject({ usd: 100, tpm: 6_000 });
});

test('a settle that failed can be repeated and counts once', async () => {
  const { limiter, store } = await openLimiter();
  const lease = await limiter.acquire(ASK);
  store.start({ calls: 1 });
  await expect(lease.settle({ tpm: 900 })).rejects.toMatchObject({ code: 'backend.unavailable' });
  await lease.settle({ tpm: 900 });
  expect(await limiter.available(ASK)).toMatchObject({ tpm: 5_100 });
});

test('commit without a holder writes nothing', async () => {
  const { limiter, store } = await openLimiter();
  const lease = await limiter.acquire(ASK);
  const before = store.calls.length;
  await lease.commit();
  expect(store.calls.length).toBe(before);
  expect(lease.state).toBe('committed');
});

test('commit settles and gives the slots back in one write', async () => {
  const { limiter, store } = await openLimiter();
  const lease = await limiter.acquire(ASK_SLOT);
  const before = store.calls.length;
  await lease.commit({ tpm: 700 });
  expect(store.calls.slice(before)).toEqual(['adjust']);
  expect(await limiter.available(ASK)).toEqual({ rpm: 59, tpm: 5_300, slots: 2 });
});

test('a second commit has no effect, whatever its totals', async () => {
  const { limiter } = await openLimiter();
  const lease = await limiter.acquire(ASK_SLOT);
  await lease.commit({ tpm: 700 });
  await lease.commit({ tpm: 5_000 });
  expect(await limiter.available(ASK)).toMatchObject({ tpm: 5_300 });
});

test('a commit that fails leaves the lease open', async () => {
  const { limiter, store } = await openLimiter();
  const lease = await limiter.acquire(ASK_SLOT);
  store.start({ calls: 1 });
  await expect(lease.commit()).rejects.toMatchObject({ code: 'backend.unavailable' });
  expect(lease.state).toBe('open');
  await lease.commit();
  expect(await limiter.available(ASK)).toMatchObject({ slots: 2 });
});

test('rollback gives everything back', async () => {
  const { limiter } = await openLimiter();
  const lease = await limiter.acquire(ASK_SLOT);
  await lease.settle({ tpm: 4_000 });
  await lease.rollback();
  expect(await limiter.available(ASK)).toEqual({ rpm: 60, tpm: 6_000, slots: 2 });
  expect(lease.state).toBe('rolled-back');
});

test('a second rollback has no effect', async () => {
  const { limiter, clock } = await openLimiter();
  const lease = await limiter.acquire({ ...ASK, consume: { tpm: 6_000 } });
  await lease.rollback();
  await limiter.acquire({ ...ASK, consume: { tpm: 6_000 } });
  await lease.rollback();
  expect(await limiter.available(ASK)).toMatchObject({ tpm: 0 });
  expect(clock.sleepers).toBe(0);
});

test('a rollback that failed at some levels of a cascade sends only those levels when called again', async () => {
  const { limiter, store } = await openLimiter();
  await limiter.entities.create({ id: 'proj-1' });
  await limiter.entities.create({ id: 'user-1', parentId: 'proj-1', cascade: true });
  const lease = await limiter.acquire(ASK);
  const { adjust } = store.backend;
  const failingParent: typeof adjust = async (call, request) => {
    const [first, ...rest] = request.levels;
    const done = await adjust(call, { ...request, levels: first === undefined ? [] : [first] });
    return [...done, ...rest.map(() => ({ kind: 'failed', error: new Error('parent out') }) as const)];
  };
  Object.assign(store.backend, { adjust: failingParent });
  await expect(lease.rollback()).rejects.toThrow('parent out');
  expect(lease.state).toBe('open');
  Object.assign(store.backend, { adjust });
  await lease.rollback();
  expect(await limiter.status(ASK)).toMatchObject([
    { entityId: 'user-1', available: 60 },
    { entityId: 'user-1', available: 6_000 },
    { entityId: 'user-1', available: 2 },
    { entityId: 'proj-1', available: 60 },
    { entityId: 'proj-1', available: 6_000 },
    { entityId: 'proj-1', available: 2 },
  ]);
});

test.each(['adjust', 'settle'] as const)('a closed lease refuses %s', async (verb) => {
  const { limiter } = await openLimiter();
  const lease = await limiter.acquire(ASK);
  await lease.commit();
  await expect(lease[verb]({ tpm: 1 })).rejects.toMatchObject({ code: 'lease.closed', state: 'committed' });
});

test('a closed lease refuses extend', async () => {
  const { limiter } = await openLimiter();
  const lease = await limiter.acquire(ASK_SLOT);
  await lease.rollback();
  await expect(lease.extend()).rejects.toMatchObject({ code: 'lease.closed', state: 'rolled-back' });
});

test('a committed lease refuses rollback, and a rolled back lease refuses commit', async () => {
  const { limiter } = await openLimiter();
  const [committed, rolledBack] = [await limiter.acquire(ASK), await limiter.acquire(ASK)];
  await committed.commit();
  await rolledBack.rollback();
  await expect(committed.rollback()).rejects.toMatchObject({ code: 'lease.closed' });
  await expect(rolledBack.commit()).rejects.toMatchObject({ code: 'lease.closed' });
});

test('release of a closed lease has no effect', async () => {
  const { limiter } = await openLimiter();
  const lease = await limiter.acquire(ASK_SLOT);
  await lease.commit();
  await lease.release();
  expect(await limiter.available(ASK)).toMatchObject({ slots: 2 });
});

test('a lease does not change when the caller reuses its request object', async () => {
  const { limiter } = await openLimiter();
  const request = { ...ASK };
  const lease = await limiter.acquire(request);
  request.entityId = 'user-2';
  expect([lease.entityId, lease.resource]).toEqual(['user-1', 'gpt-4']);
});

test('a commit runs after a settle that was not awaited', async () => {
  const { limiter } = await openLimiter();
  const lease = await limiter.acquire(ASK);
  void lease.settle({ tpm: 900 });
  await lease.commit();
  expect(await limiter.available(ASK)).toMatchObject({ tpm: 5_100 });
});

test('a release during a commit has no effect', async () => {
  const { limiter } = await openLimiter();
  const lease = await limiter.acquire(ASK_SLOT);
  await Promise.all([lease.commit(), lease.release()]);
  expect(await limiter.available(ASK)).toMatchObject({ slots: 2 });
});

test('a dispose after a rollback that was not awaited has no effect', async () => {
  const { limiter, errors } = await openLimiter();
  {
    await using lease = await limiter.acquire(ASK_SLOT);
    void lease.rollback();
  }
  expect(errors).toEqual([]);
  expect(await limiter.available(ASK)).toEqual({ rpm: 60, tpm: 6_000, slots: 2 });
});

test('release gives the slots back once, and leaves the lease open for settle', async () => {
  const { limiter } = await openLimiter();
  const lease = await limiter.acquire(ASK_SLOT);
  await Promise.all([lease.release(), lease.release()]);
  expect(lease).toMatchObject({ state: 'open', expiresAt: null });
  await lease.settle({ tpm: 800 });
  await lease.commit();
  expect(await limiter.available(ASK)).toEqual({ rpm: 59, tpm: 5_200, slots: 2 });
});

test('await using commits a lease that is still open', async () => {
  const { limiter } = await openLimiter();
  {
    await using lease = await limiter.acquire(ASK_SLOT);
    await lease.settle({ tpm: 900 });
  }
  expect(await limiter.available(ASK)).toEqual({ rpm: 59, tpm: 5_100, slots: 2 });
});

test('await using does not change a lease that was rolled back', async () => {
  const { limiter } = await openLimiter();
  {
    await using lease = await limiter.acquire(ASK_SLOT);
    await lease.rollback();
  }
  expect(await limiter.available(ASK)).toEqual({ rpm: 60, tpm: 6_000, slots: 2 });
});

test('await using commits also when the block throws, and the error is thrown', async () => {
  const { limiter } = await openLimiter();
  const work = async (): Promise<void> => {
    await using lease = await limiter.acquire(ASK_SLOT);
    throw new Error(`work under ${lease.state}`);
  };
  await expect(work()).rejects.toThrow('work under open');
  expect(await limiter.available(ASK)).toEqual({ rpm: 59, tpm: 5_500, slots: 2 });
});

test('await using never throws: a failing commit reaches onError', async () => {
  const { limiter, store, errors } = await openLimiter();
  {
    await using lease = await limiter.acquire(ASK_SLOT);
    store.start();
    expect(lease.state).toBe('open');
  }
  expect(errors).toMatchObject([{ where: 'lease dispose', error: { code: 'backend.unavailable' } }]);
});

test('await using works with a limiter and its lease in one block', async () => {
  const { limiter, store } = await openLimiter();
  {
    await using owner = limiter;
    await using lease = await owner.acquire(ASK_SLOT);
    expect(lease.state).toBe('open');
  }
  expect(store.calls.slice(-2)).toEqual(['adjust', 'close']);
});

test('a lease can be ended after its limiter was closed', async () => {
  const { limiter, errors } = await openLimiter();
  {
    await using lease = await limiter.acquire(ASK_SLOT);
    await using owner = limiter;
    expect([lease.state, await owner.available(ASK)]).toMatchObject(['open', { slots: 1 }]);
  }
  expect(errors).toEqual([]);
});

test('two leases that get the same random id in one millisecond are two leases', async () => {
  const draws = [0.5, 0.5, 0.5, 0.25];
  vi.spyOn(Math, 'random').mockImplementation(() => draws.shift() ?? 0.75);
  const { limiter } = await openLimiter();
  const [first, second] = [await limiter.acquire(ASK_SLOT), await limiter.acquire(ASK_SLOT)];
  vi.restoreAllMocks();
  expect(first.id).not.toBe(second.id);
  await Promise.all([first.commit(), second.commit()]);
  expect(await limiter.available(ASK)).toMatchObject({ slots: 2 });
});

test('an acquire that finds no free lease id is denied, and nothing is taken', async () => {
  vi.spyOn(Math, 'random').mockReturnValue(0.5);
  const { limiter } = await openLimiter();
  await limiter.acquire(ASK_SLOT);
  expect(await limiter.tryAcquire(ASK_SLOT)).toMatchObject({ granted: false, reason: 'contended', retryAfterMs: 1 });
  vi.restoreAllMocks();
  expect(await limiter.available(ASK)).toMatchObject({ rpm: 59, slots: 1 });
});
