import { describe, expect, test, vi } from 'vitest';
import { ASK, ASK_SLOT, LIMITS, openLimiter } from '../../../tests/support/open-limiter.js';

import { Limit } from '../../core/limit.js';

describe('adjust', () => {
  test('adds to what was taken, into debt if need be', async () => {
    const { limiter } = await openLimiter();
    const lease = await limiter.acquire(ASK);
    await lease.adjust({ tpm: 7_000 });
    expect(lease.consumed).toEqual({ rpm: 1, tpm: 7_500 });
    expect(await limiter.available(ASK)).toEqual({ rpm: 59, tpm: -1_500, slots: 2 });
  });

  test('gives part of it back', async () => {
    const { limiter } = await openLimiter();
    const lease = await limiter.acquire(ASK);
    await lease.adjust({ tpm: -400 });
    expect(await limiter.available(ASK)).toEqual({ rpm: 59, tpm: 5_900, slots: 2 });
  });

  test('takes a limit that was not consumed at first', async () => {
    const { limiter } = await openLimiter();
    const lease = await limiter.acquire({ ...ASK, consume: { rpm: 1 } });
    await lease.adjust({ tpm: 1_000 });
    expect(lease.consumed).toEqual({ rpm: 1, tpm: 1_000 });
    expect(await limiter.available(ASK)).toMatchObject({ tpm: 5_000 });
  });

  test('refuses to give back more than was taken', async () => {
    const { limiter } = await openLimiter();
    const lease = await limiter.acquire(ASK);
    await expect(lease.adjust({ tpm: -501 })).rejects.toMatchObject({ code: 'input.invalid', field: 'deltas.tpm' });
    expect(await limiter.available(ASK)).toMatchObject({ tpm: 5_500 });
  });

  test('refuses slots, and says what to use', async () => {
    const { limiter } = await openLimiter();
    const lease = await limiter.acquire(ASK_SLOT);
    await expect(lease.adjust({ slots: -1 })).rejects.toThrow(/release\(\)/);
  });

  test.each([{ tpm: 1.5 }, { tpm: undefined }, { tpm: Number.NaN }, { tpm: 2e12 }, { nope: 1 }])(
    'refuses %j and changes nothing',
    async (deltas) => {
      const { limiter } = await openLimiter();
      const lease = await limiter.acquire(ASK);
      await expect(lease.adjust(deltas as Record<string, number>)).rejects.toMatchObject({ code: 'input.invalid' });
      expect(lease.consumed).toEqual({ rpm: 1, tpm: 500 });
    },
  );

  test('several at once add up', async () => {
    const { limiter } = await openLimiter();
    const lease = await limiter.acquire(ASK);
    await Promise.all([lease.adjust({ tpm: 100 }), lease.adjust({ tpm: 200 }), lease.adjust({ tpm: -50 })]);
    expect(lease.consumed).toEqual({ rpm: 1, tpm: 750 });
  });
});

describe('settle', () => {
  test('states the total, so it can be repeated', async () => {
    const { limiter } = await openLimiter();
    const lease = await limiter.acquire(ASK);
    await lease.settle({ tpm: 900 });
    await lease.settle({ tpm: 900 });
    expect(lease.state).toBe('open');
    expect(await limiter.available(ASK)).toMatchObject({ tpm: 5_100 });
  });

  test('leaves limits alone that are not named', async () => {
    const { limiter } = await openLimiter();
    const lease = await limiter.acquire(ASK);
    await lease.settle({ tpm: 0 });
    expect(lease.consumed).toEqual({ rpm: 1, tpm: 0 });
  });

  test('takes a limit that was added after the grant, and rollback gives it back', async () => {
    const { limiter } = await openLimiter();
    const lease = await limiter.acquire(ASK);
    await limiter.config.setResource('gpt-4', { limits: [...LIMITS, Limit.perDay('usd', 100)] });
    await lease.settle({ usd: 30 });
    expect(await limiter.available(ASK)).toMatchObject({ usd: 70 });
    await lease.rollback();
    expect(await limiter.available(ASK)).toMatchObject({ usd: 100, tpm: 6_000 });
  });

  test('that failed can be sent again and counts once', async () => {
    const { limiter, store } = await openLimiter();
    const lease = await limiter.acquire(ASK);
    store.start({ calls: 1 });
    await expect(lease.settle({ tpm: 900 })).rejects.toMatchObject({ code: 'backend.unavailable' });
    await lease.settle({ tpm: 900 });
    expect(await limiter.available(ASK)).toMatchObject({ tpm: 5_100 });
  });
});

describe('commit', () => {
  test('without a holder writes nothing', async () => {
    const { limiter, store } = await openLimiter();
    const lease = await limiter.acquire(ASK);
    const before = store.calls.length;
    await lease.commit();
    expect(store.calls.length).toBe(before);
    expect(lease.state).toBe('committed');
  });

  test('settles and gives the slots back in one write', async () => {
    const { limiter, store } = await openLimiter();
    const lease = await limiter.acquire(ASK_SLOT);
    const before = store.calls.length;
    await lease.commit({ tpm: 700 });
    expect(store.calls.slice(before)).toEqual(['adjust']);
    expect(await limiter.available(ASK)).toEqual({ rpm: 59, tpm: 5_300, slots: 2 });
  });

  test('repeated does nothing, whatever the totals', async () => {
    const { limiter } = await openLimiter();
    const lease = await limiter.acquire(ASK_SLOT);
    await lease.commit({ tpm: 700 });
    await lease.commit({ tpm: 5_000 });
    expect(await limiter.available(ASK)).toMatchObject({ tpm: 5_300 });
  });

  test('that fails leaves the lease open', async () => {
    const { limiter, store } = await openLimiter();
    const lease = await limiter.acquire(ASK_SLOT);
    store.start({ calls: 1 });
    await expect(lease.commit()).rejects.toMatchObject({ code: 'backend.unavailable' });
    expect(lease.state).toBe('open');
    await lease.commit();
    expect(await limiter.available(ASK)).toMatchObject({ slots: 2 });
  });
});

describe('rollback', () => {
  test('returns everything', async () => {
    const { limiter } = await openLimiter();
    const lease = await limiter.acquire(ASK_SLOT);
    await lease.settle({ tpm: 4_000 });
    await lease.rollback();
    expect(await limiter.available(ASK)).toEqual({ rpm: 60, tpm: 6_000, slots: 2 });
    expect(lease.state).toBe('rolled-back');
  });

  test('repeated does nothing', async () => {
    const { limiter, clock } = await openLimiter();
    const lease = await limiter.acquire({ ...ASK, consume: { tpm: 6_000 } });
    await lease.rollback();
    await limiter.acquire({ ...ASK, consume: { tpm: 6_000 } });
    await lease.rollback();
    expect(await limiter.available(ASK)).toMatchObject({ tpm: 0 });
    expect(clock.sleepers).toBe(0);
  });

  test('that fails halfway through a cascade sends only the rest when called again', async () => {
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
});

describe('a closed lease', () => {
  test.each(['adjust', 'settle'] as const)('refuses %s', async (verb) => {
    const { limiter } = await openLimiter();
    const lease = await limiter.acquire(ASK);
    await lease.commit();
    await expect(lease[verb]({ tpm: 1 })).rejects.toMatchObject({ code: 'lease.closed', state: 'committed' });
  });

  test('refuses extend', async () => {
    const { limiter } = await openLimiter();
    const lease = await limiter.acquire(ASK_SLOT);
    await lease.rollback();
    await expect(lease.extend()).rejects.toMatchObject({ code: 'lease.closed', state: 'rolled-back' });
  });

  test('refuses the other way of ending', async () => {
    const { limiter } = await openLimiter();
    const [committed, rolledBack] = [await limiter.acquire(ASK), await limiter.acquire(ASK)];
    await committed.commit();
    await rolledBack.rollback();
    await expect(committed.rollback()).rejects.toMatchObject({ code: 'lease.closed' });
    await expect(rolledBack.commit()).rejects.toMatchObject({ code: 'lease.closed' });
  });

  test('lets release do nothing', async () => {
    const { limiter } = await openLimiter();
    const lease = await limiter.acquire(ASK_SLOT);
    await lease.commit();
    await lease.release();
    expect(await limiter.available(ASK)).toMatchObject({ slots: 2 });
  });
});

test('a lease stays what it is when its request is used again for another', async () => {
  const { limiter } = await openLimiter();
  const request = { ...ASK };
  const lease = await limiter.acquire(request);
  request.entityId = 'user-2';
  expect([lease.entityId, lease.resource]).toEqual(['user-1', 'gpt-4']);
});

describe('ends that meet', () => {
  test('a commit behind a settle that nobody awaited comes after it', async () => {
    const { limiter } = await openLimiter();
    const lease = await limiter.acquire(ASK);
    void lease.settle({ tpm: 900 });
    await lease.commit();
    expect(await limiter.available(ASK)).toMatchObject({ tpm: 5_100 });
  });

  test('a release beside a commit does nothing', async () => {
    const { limiter } = await openLimiter();
    const lease = await limiter.acquire(ASK_SLOT);
    await Promise.all([lease.commit(), lease.release()]);
    expect(await limiter.available(ASK)).toMatchObject({ slots: 2 });
  });

  test('a dispose behind a rollback that nobody awaited does nothing', async () => {
    const { limiter, errors } = await openLimiter();
    {
      await using lease = await limiter.acquire(ASK_SLOT);
      void lease.rollback();
    }
    expect(errors).toEqual([]);
    expect(await limiter.available(ASK)).toEqual({ rpm: 60, tpm: 6_000, slots: 2 });
  });
});

describe('release', () => {
  test('gives the slots back, once, and leaves the lease open for settle', async () => {
    const { limiter } = await openLimiter();
    const lease = await limiter.acquire(ASK_SLOT);
    await Promise.all([lease.release(), lease.release()]);
    expect(lease).toMatchObject({ state: 'open', expiresAt: null });
    await lease.settle({ tpm: 800 });
    await lease.commit();
    expect(await limiter.available(ASK)).toEqual({ rpm: 59, tpm: 5_200, slots: 2 });
  });
});

describe('await using', () => {
  test('commits a lease that is still open', async () => {
    const { limiter } = await openLimiter();
    {
      await using lease = await limiter.acquire(ASK_SLOT);
      await lease.settle({ tpm: 900 });
    }
    expect(await limiter.available(ASK)).toEqual({ rpm: 59, tpm: 5_100, slots: 2 });
  });

  test('leaves a lease alone that was rolled back before', async () => {
    const { limiter } = await openLimiter();
    {
      await using lease = await limiter.acquire(ASK_SLOT);
      await lease.rollback();
    }
    expect(await limiter.available(ASK)).toEqual({ rpm: 60, tpm: 6_000, slots: 2 });
  });

  test('commits also when the block throws, and the error survives', async () => {
    const { limiter } = await openLimiter();
    const work = async (): Promise<void> => {
      await using lease = await limiter.acquire(ASK_SLOT);
      throw new Error(`work under ${lease.state}`);
    };
    await expect(work()).rejects.toThrow('work under open');
    expect(await limiter.available(ASK)).toEqual({ rpm: 59, tpm: 5_500, slots: 2 });
  });

  test('never throws: a failing commit reaches onError', async () => {
    const { limiter, store, errors } = await openLimiter();
    {
      await using lease = await limiter.acquire(ASK_SLOT);
      store.start();
      expect(lease.state).toBe('open');
    }
    expect(errors).toMatchObject([{ where: 'lease dispose', error: { code: 'backend.unavailable' } }]);
  });

  test('works in both orders: the limiter outlives its leases', async () => {
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
});

test('two leases that draw the same id in one millisecond are two leases', async () => {
  const draws = [0.5, 0.5, 0.5, 0.25];
  vi.spyOn(Math, 'random').mockImplementation(() => draws.shift() ?? 0.75);
  const { limiter } = await openLimiter();
  const [first, second] = [await limiter.acquire(ASK_SLOT), await limiter.acquire(ASK_SLOT)];
  vi.restoreAllMocks();
  expect(first.id).not.toBe(second.id);
  await Promise.all([first.commit(), second.commit()]);
  expect(await limiter.available(ASK)).toMatchObject({ slots: 2 });
});

test('a lease for which no free id can be drawn is denied, and nothing is taken', async () => {
  vi.spyOn(Math, 'random').mockReturnValue(0.5);
  const { limiter } = await openLimiter();
  await limiter.acquire(ASK_SLOT);
  expect(await limiter.tryAcquire(ASK_SLOT)).toMatchObject({ granted: false, reason: 'contended', retryAfterMs: 1 });
  vi.restoreAllMocks();
  expect(await limiter.available(ASK)).toMatchObject({ rpm: 59, slots: 1 });
});
