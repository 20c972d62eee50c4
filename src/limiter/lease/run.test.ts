import { expect, test } from 'vitest';
import { ASK, ASK_SLOT, openLimiter } from '../../../tests/support/models/open-limiter.js';

const FULL = { rpm: 60, tpm: 6_000, slots: 2 };

test('run commits when the function returns, and returns its result', async () => {
  const { limiter } = await openLimiter();
  const text = await limiter.run(ASK_SLOT, async (lease) => {
    await lease.settle({ tpm: 900 });
    return 'text';
  });
  expect(text).toBe('text');
  expect(await limiter.available(ASK)).toEqual({ rpm: 59, tpm: 5_100, slots: 2 });
});

test('run accepts a function that is not async', async () => {
  const { limiter } = await openLimiter();
  expect(await limiter.run(ASK, () => 7)).toBe(7);
});

test('run rolls back when the function throws, and throws the same error', async () => {
  const { limiter } = await openLimiter();
  const failure = new Error('vendor');
  await expect(limiter.run(ASK_SLOT, () => Promise.reject(failure))).rejects.toBe(failure);
  expect(await limiter.available(ASK)).toEqual(FULL);
});

test('run commits after a throw if onThrow is commit', async () => {
  const { limiter } = await openLimiter();
  await expect(limiter.run({ ...ASK_SLOT, onThrow: 'commit' }, () => Promise.reject(new Error('x')))).rejects.toThrow();
  expect(await limiter.available(ASK)).toEqual({ rpm: 59, tpm: 5_500, slots: 2 });
});

test('run calls onThrow with the error to decide what to do', async () => {
  const { limiter } = await openLimiter();
  const onThrow = (error: unknown) => (String(error).includes('429') ? 'rollback' : 'commit');
  await expect(limiter.run({ ...ASK, onThrow }, () => Promise.reject(new Error('429')))).rejects.toThrow('429');
  expect(await limiter.available(ASK)).toEqual(FULL);
  await expect(limiter.run({ ...ASK, onThrow }, () => Promise.reject(new Error('500')))).rejects.toThrow('500');
  expect(await limiter.available(ASK)).toEqual({ rpm: 59, tpm: 5_500, slots: 2 });
});

test('run keeps settled limits and rolls the others back when the function throws after settle', async () => {
  const { limiter } = await openLimiter();
  const work = limiter.run(ASK_SLOT, async (lease) => {
    await lease.settle({ tpm: 900 });
    throw new Error('after settle');
  });
  await expect(work).rejects.toThrow('after settle');
  expect(await limiter.available(ASK)).toEqual({ rpm: 60, tpm: 5_100, slots: 2 });
});

test('run keeps what a settle states that the function did not await before it threw', async () => {
  const { limiter } = await openLimiter();
  const work = limiter.run(ASK_SLOT, (lease) => {
    void lease.settle({ tpm: 900 });
    throw new Error('after settle');
  });
  await expect(work).rejects.toThrow('after settle');
  expect(await limiter.available(ASK)).toEqual({ rpm: 60, tpm: 5_100, slots: 2 });
});

test('run does not change a lease that the function ended itself', async () => {
  const { limiter, errors } = await openLimiter();
  await limiter.run(ASK_SLOT, (lease) => lease.rollback());
  expect(await limiter.available(ASK)).toEqual(FULL);
  expect(errors).toEqual([]);
});

test('run returns the result although the commit fails', async () => {
  const { limiter, store, errors } = await openLimiter();
  const result = await limiter.run(ASK_SLOT, async () => {
    store.start();
    return 'kept';
  });
  expect(result).toBe('kept');
  expect(errors).toMatchObject([{ where: 'run commit', error: { code: 'backend.unavailable' } }]);
});

test('run throws the error of the function although the rollback fails', async () => {
  const { limiter, store, errors } = await openLimiter();
  const work = limiter.run(ASK_SLOT, async () => {
    store.start();
    throw new Error('mine');
  });
  await expect(work).rejects.toThrow('mine');
  expect(errors).toMatchObject([{ where: 'run rollback', error: { code: 'backend.unavailable' } }]);
});

test('run throws the error of the function although onThrow throws', async () => {
  const { limiter, errors } = await openLimiter();
  const onThrow = () => {
    throw new Error('theirs');
  };
  await expect(limiter.run({ ...ASK_SLOT, onThrow }, () => Promise.reject(new Error('mine')))).rejects.toThrow('mine');
  expect(errors).toMatchObject([{ where: 'run rollback', error: { message: 'theirs' } }]);
  // The lease is rolled back all the same: an open one would keep its slot until it expires.
  expect(await limiter.available(ASK)).toEqual(FULL);
});

test('run treats an abort of the work as a throw', async () => {
  const { limiter } = await openLimiter();
  const stop = new AbortController();
  const work = limiter.run({ ...ASK_SLOT, signal: stop.signal }, async () => {
    stop.abort(new Error('user left'));
    stop.signal.throwIfAborted();
  });
  await expect(work).rejects.toThrow('user left');
  expect(await limiter.available(ASK)).toEqual(FULL);
});

test('run does not call the function after a denial', async () => {
  const { limiter } = await openLimiter();
  let called = false;
  const work = limiter.run({ ...ASK, consume: { rpm: 61 } }, () => (called = true));
  await expect(work).rejects.toMatchObject({ code: 'limit.impossible' });
  expect(called).toBe(false);
});

test('run extends its lease after each third of its lifetime while the function runs', async () => {
  const { limiter, clock } = await openLimiter();
  let finish = (): void => {};
  const work = limiter.run({ ...ASK_SLOT, consume: { slots: 2 }, leaseTtlMs: 6_000 }, async (lease) => {
    await new Promise<void>((resolve) => (finish = resolve));
    return lease.signal.aborted;
  });
  await clock.advance(60_000);
  expect(await limiter.tryAcquire(ASK_SLOT)).toMatchObject({ granted: false });
  finish();
  expect(await work).toBe(false);
  expect(await limiter.tryAcquire(ASK_SLOT)).toMatchObject({ granted: true });
  expect(clock.sleepers).toBe(0);
});

test('run reports an extension that fails, and continues', async () => {
  const { limiter, clock, store, errors } = await openLimiter();
  let finish = (): void => {};
  const work = limiter.run(
    { ...ASK_SLOT, leaseTtlMs: 6_000 },
    () => new Promise<void>((resolve) => (finish = resolve)),
  );
  store.start({ only: ['extend'], calls: 1 });
  await clock.advance(2_000);
  expect(errors).toMatchObject([{ where: 'run extend' }]);
  await clock.advance(2_000);
  finish();
  await work;
  expect(errors).toHaveLength(1);
});

const stream = async function* (): AsyncGenerator<number> {
  yield 1;
  yield 2;
};

test('run with an async generator keeps the lease until the generator ends, then commits', async () => {
  const { limiter } = await openLimiter();
  const chunks = await limiter.run(ASK_SLOT, stream);
  const seen: number[] = [];
  for await (const chunk of chunks) {
    seen.push(chunk);
    expect(await limiter.available(ASK)).toMatchObject({ slots: 1 });
  }
  expect(seen).toEqual([1, 2]);
  expect(await limiter.available(ASK)).toEqual({ rpm: 59, tpm: 5_500, slots: 2 });
});

test('leaving an async generator early counts as a throw', async () => {
  const { limiter } = await openLimiter();
  for await (const chunk of await limiter.run(ASK_SLOT, stream)) if (chunk === 1) break;
  expect(await limiter.available(ASK)).toEqual(FULL);
});

test('leaving an async generator before its first step counts as a throw', async () => {
  const { limiter, clock } = await openLimiter();
  const chunks = await limiter.run(ASK_SLOT, stream);
  await chunks.return(undefined);
  expect(await limiter.available(ASK)).toEqual(FULL);
  expect(clock.sleepers).toBe(0);
});

test('the slots of an async generator that is never iterated are given back at their expiry', async () => {
  const { limiter, clock } = await openLimiter();
  await limiter.run({ ...ASK_SLOT, consume: { slots: 2 } }, stream);
  await clock.advance(60_000);
  expect(await limiter.tryAcquire(ASK_SLOT)).toMatchObject({ granted: true });
});

test('run extends the lease of an async generator while it is iterated', async () => {
  const { limiter, clock } = await openLimiter();
  const chunks = await limiter.run({ ...ASK_SLOT, consume: { slots: 2 } }, stream);
  await chunks.next();
  await clock.advance(600_000);
  expect(await limiter.tryAcquire(ASK_SLOT)).toMatchObject({ granted: false });
  await chunks.return(undefined);
  expect(clock.sleepers).toBe(0);
});

test.each([59_999, 60_000])(
  'run extends the lease of an async generator once if its first step comes after %i ms',
  async (lateMs) => {
    const { limiter, clock, store } = await openLimiter();
    const chunks = await limiter.run({ ...ASK_SLOT, consume: { slots: 2 } }, stream);
    await clock.advance(lateMs);
    await chunks.next();
    await clock.advance(19_000);
    expect(store.calls.filter((call) => call === 'extend')).toHaveLength(1);
    await clock.advance(600_000);
    expect(await limiter.tryAcquire(ASK_SLOT)).toMatchObject({ granted: false });
    await chunks.return(undefined);
    expect(clock.sleepers).toBe(0);
  },
);

test('run tries an extension that fails again once a second, also after the expiry', async () => {
  const { limiter, clock, store } = await openLimiter();
  let finish = (): void => {};
  const work = limiter.run(ASK_SLOT, () => new Promise<void>((resolve) => (finish = resolve)));
  store.start({ only: ['extend'], kind: 'throttled' });
  await clock.advance(60_000);
  const before = store.calls.length;
  await clock.advance(10_000);
  expect(store.calls.length - before).toBe(10);
  store.end();
  finish();
  await work;
});

test('an error in an async generator rolls back and is thrown', async () => {
  const { limiter } = await openLimiter();
  const chunks = await limiter.run(ASK_SLOT, async function* (): AsyncGenerator<number> {
    yield 1;
    throw new Error('stream broke');
  });
  await expect(drain(chunks)).rejects.toThrow('stream broke');
  expect(await limiter.available(ASK)).toEqual(FULL);
});

async function drain(chunks: AsyncIterable<unknown>): Promise<void> {
  for await (const chunk of chunks) void chunk;
}
