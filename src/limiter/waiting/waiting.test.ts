import { expect, test } from 'vitest';
import { ASK, ASK_SLOT, openLimiter } from '../../../tests/support/models/open-limiter.js';
import { distantBackend } from '../../../tests/support/models/distant-backend.js';
import { memory } from '../../backends/embedded/memory.js';
import { Limit } from '../../core/limit.js';
import { fakeClock } from '../../testing/fake-clock.js';
import { RateLimiter } from '../rate-limiter.js';

const wait = { timeoutMs: 5_000 };

/** A limiter with an empty rpm bucket, which refills one token each second. */
async function drained() {
  const opened = await openLimiter();
  await opened.limiter.acquire({ ...ASK, consume: { rpm: 60 } });
  return opened;
}

function tracked<T>(promise: Promise<T>) {
  const state = { done: false, promise };
  const finish = (): void => {
    state.done = true;
  };
  promise.then(finish, finish);
  return state;
}

test('a call that waits takes what it asked for, although its caller has changed the request since', async () => {
  const { limiter, clock } = await drained();
  const consume = { rpm: 3 };
  const request = { ...ASK, consume, wait: { timeoutMs: 5_000 } };
  const waiting = limiter.acquire(request);
  await clock.advance(10);
  consume.rpm = 1;
  Object.assign(request, { entityId: 'user-2', wait: { timeoutMs: 0 } });
  await clock.advance(5_000);
  expect(await waiting).toMatchObject({ entityId: 'user-1', consumed: { rpm: 3 } });
});

test('a call that waits for 0 slots, while more are held than there are, asks no more often than others', async () => {
  const clock = fakeClock();
  const { backend, calls } = distantBackend(memory(), clock, 10);
  const limiter = await RateLimiter.open(backend, { clock });
  await limiter.config.setSystem({ limits: [Limit.concurrent('slots', 2)] });
  const held = limiter.acquire({ ...ASK, consume: { slots: 2 } });
  await clock.advance(10);
  const lease = await held;
  await limiter.config.setSystem({ limits: [Limit.concurrent('slots', 1)] });
  const waiting = tracked(limiter.acquire({ ...ASK, consume: { slots: 0 }, wait }));
  await clock.advance(2_000);
  expect(calls.filter((call) => call === 'consume').length).toBeLessThan(25);
  expect(waiting.done).toBe(false);
  void lease.commit();
  await clock.advance(50);
  expect(waiting.done).toBe(true);
});

test('a wait for a rate is granted at the announced time and not before', async () => {
  const { limiter, clock } = await drained();
  const waiting = tracked(limiter.acquire({ ...ASK, wait }));
  await clock.advance(999);
  expect(waiting.done).toBe(false);
  await clock.advance(1);
  expect((await waiting.promise).state).toBe('open');
  expect(clock.sleepers).toBe(0);
});

test('a wait for a rate is denied at once if the announced wait is longer than its timeout', async () => {
  const { limiter, clock } = await drained();
  const asked = limiter.acquire({ ...ASK, consume: { rpm: 6 }, wait });
  await expect(asked).rejects.toMatchObject({ code: 'limit.exceeded', retryAfterMs: 6_000 });
  expect(clock.sleepers).toBe(0);
});

test('a wait for a rate is denied at once if no wait helps', async () => {
  const { limiter } = await drained();
  await expect(limiter.acquire({ ...ASK, consume: { rpm: 61 }, wait })).rejects.toMatchObject({
    code: 'limit.impossible',
    retryAfterMs: null,
  });
});

test('a denied wait is returned by tryAcquire, not thrown', async () => {
  const { limiter, clock } = await drained();
  const waiting = limiter.tryAcquire({ ...ASK, wait });
  await clock.advance(1_000);
  expect(await waiting).toMatchObject({ granted: true, decidedBy: 'store' });
});

test('a wait that is aborted rejects with the reason of the signal, and leaves no timer', async () => {
  const { limiter, clock } = await drained();
  const stop = new AbortController();
  const waiting = limiter.acquire({ ...ASK, wait, signal: stop.signal });
  await clock.advance(10);
  stop.abort(new Error('client went away'));
  await expect(waiting).rejects.toThrow('client went away');
  expect(clock.sleepers).toBe(0);
});

test('a wait does not start with an aborted signal', async () => {
  const { limiter, store } = await drained();
  const before = store.calls.length;
  const waiting = limiter.acquire({ ...ASK, wait, signal: AbortSignal.abort(new Error('too late')) });
  await expect(waiting).rejects.toThrow('too late');
  expect(store.calls.length).toBe(before);
});

test('a wait for a rate is granted after a refund in its own process', async () => {
  const { limiter, clock } = await openLimiter();
  const lease = await limiter.acquire({ ...ASK, consume: { rpm: 60 } });
  const waiting = tracked(limiter.acquire({ ...ASK, consume: { rpm: 5 }, wait }));
  await clock.advance(1);
  await lease.rollback();
  await clock.advance(0);
  expect(waiting.done).toBe(true);
  await waiting.promise;
});

test('a wait of 0 ms asks once', async () => {
  const { limiter } = await drained();
  await expect(limiter.acquire({ ...ASK, wait: { timeoutMs: 0 } })).rejects.toMatchObject({ code: 'limit.exceeded' });
  expect((await limiter.acquire({ ...ASK, consume: { tpm: 1 }, wait: { timeoutMs: 0 } })).state).toBe('open');
});

test('waiters are served in the order of their arrival', async () => {
  const { limiter, clock } = await drained();
  const order: number[] = [];
  const waiters = [1, 2, 3].map((n) => limiter.acquire({ ...ASK, wait }).then(() => order.push(n)));
  await clock.advance(3_000);
  await Promise.all(waiters);
  expect(order).toEqual([1, 2, 3]);
});

test('a small ask does not overtake a large one that waits', async () => {
  const { limiter, clock } = await drained();
  const large = tracked(limiter.acquire({ ...ASK, consume: { rpm: 3 }, wait }));
  const small = tracked(limiter.acquire({ ...ASK, consume: { rpm: 1 }, wait }));
  await clock.advance(2_999);
  expect([large.done, small.done]).toEqual([false, false]);
  await clock.advance(1);
  expect([large.done, small.done]).toEqual([true, false]);
  await clock.advance(1_000);
  expect(small.done).toBe(true);
});

test('an ask without a wait may overtake waiters', async () => {
  const { limiter, clock } = await drained();
  const waiting = tracked(limiter.acquire({ ...ASK, consume: { rpm: 3 }, wait }));
  await clock.advance(1_000);
  expect(await limiter.tryAcquire({ ...ASK, consume: { rpm: 1 } })).toMatchObject({ granted: true });
  await clock.advance(2_999);
  expect(waiting.done).toBe(false);
  await clock.advance(1);
  expect(waiting.done).toBe(true);
});

test('waiters of a bucket of per-call limits do not wait behind waiters of the plain bucket', async () => {
  const { limiter, clock } = await drained();
  const plain = tracked(limiter.acquire({ ...ASK, consume: { rpm: 3 }, wait }));
  const own = tracked(limiter.acquire({ ...ASK, consume: { rpm: 1 }, limits: [Limit.perMinute('rpm', 5)], wait }));
  await clock.advance(0);
  expect([plain.done, own.done]).toEqual([false, true]);
  await clock.advance(3_000);
  await plain.promise;
});

test('each waiter causes one onDecision call', async () => {
  const events: unknown[] = [];
  const { limiter, clock } = await openLimiter({ onDecision: (event) => events.push(event) });
  await limiter.acquire({ ...ASK_SLOT, consume: { slots: 2 } });
  const waiting = limiter.tryAcquire({ ...ASK_SLOT, wait });
  await clock.advance(5_000);
  expect(await waiting).toMatchObject({ granted: false });
  expect(events).toMatchObject([{ granted: true }, { granted: false }]);
});

test('a wait with bad input is refused at once', async () => {
  const { limiter } = await drained();
  void limiter.acquire({ ...ASK, consume: { rpm: 3 }, wait }).catch(() => {});
  await expect(limiter.acquire({ ...ASK, consume: { rpm: -1 }, wait })).rejects.toMatchObject({
    code: 'input.invalid',
  });
});

test('waiters are granted when the bucket is reset', async () => {
  const { limiter, clock } = await drained();
  const waiting = tracked(limiter.acquire({ ...ASK, consume: { rpm: 5 }, wait }));
  await clock.advance(1);
  await limiter.buckets.reset(ASK);
  await clock.advance(0);
  expect(waiting.done).toBe(true);
});

test('a waiter that is aborted makes room for the next one', async () => {
  const { limiter, clock } = await drained();
  const stop = new AbortController();
  const first = limiter.acquire({ ...ASK, consume: { rpm: 5 }, wait, signal: stop.signal });
  const second = tracked(limiter.acquire({ ...ASK, wait }));
  await clock.advance(1_000);
  stop.abort(new Error('left'));
  await expect(first).rejects.toThrow('left');
  await clock.advance(0);
  expect(second.done).toBe(true);
});

test('the denial of a waiter that times out has the wait until all waiters of its line are served', async () => {
  const { limiter, clock, store } = await drained();
  const first = limiter.acquire({ ...ASK, consume: { rpm: 4 }, wait });
  const second = limiter.acquire({ ...ASK, consume: { rpm: 2 }, wait: { timeoutMs: 2_500 } });
  const denied = expect(second).rejects.toMatchObject({ code: 'limit.exceeded', retryAfterMs: 3_500 });
  await clock.advance(10);
  const asked = store.calls.length;
  await clock.advance(2_500);
  await denied;
  expect(store.calls.length).toBe(asked);
  await clock.advance(1_500);
  expect((await first).state).toBe('open');
  expect(clock.sleepers).toBe(0);
});

test('a new call that asks for at least as much as the head does not overtake it', async () => {
  const { limiter, clock } = await drained();
  const order: string[] = [];
  const note = (name: string) => () => void order.push(name);
  const first = limiter.acquire({ ...ASK, wait }).then(note('first'));
  await clock.advance(999);
  // Both are due at the same instant; the token is for the first one.
  clock.set(clock.now() + 1);
  const second = limiter.acquire({ ...ASK, wait }).then(note('second'));
  await clock.advance(1_000);
  await Promise.all([first, second]);
  expect(order).toEqual(['first', 'second']);
});

test('a new call that fits goes before a head that needs more than is available', async () => {
  const { limiter, clock } = await drained();
  const large = tracked(limiter.acquire({ ...ASK, consume: { rpm: 3 }, wait }));
  await clock.advance(1_000);
  const small = tracked(limiter.acquire({ ...ASK, wait }));
  await clock.advance(0);
  expect([large.done, small.done]).toEqual([false, true]);
  await clock.advance(3_000);
  expect(large.done).toBe(true);
});

test('small asks that keep arriving do not starve a large one', async () => {
  const { limiter, clock } = await drained();
  const patient = { timeoutMs: 60_000 };
  const large = tracked(limiter.acquire({ ...ASK, consume: { rpm: 3 }, wait: patient }));
  const small: ReturnType<typeof tracked>[] = [];
  for (let second = 0; second < 12 && !large.done; second++) {
    await clock.advance(1_000);
    small.push(tracked(limiter.acquire({ ...ASK, wait: patient })));
  }
  expect(large.done).toBe(true);
  // Calls that arrived after the due time of the large ask joined the line behind it.
  expect(small.filter(({ done }) => done).length).toBe(2);
  await limiter.close();
});

test('a head that is refused again and again lets the waiters behind it pass once a second', async () => {
  const { limiter, clock } = await openLimiter();
  const lease = await limiter.acquire({ ...ASK_SLOT, consume: { slots: 1 } });
  const large = tracked(limiter.acquire({ ...ASK_SLOT, consume: { slots: 2 }, wait: { timeoutMs: 30_000 } }));
  await clock.advance(300);
  // The head was refused. A new call waits behind it, although a slot is free.
  const small = tracked(limiter.acquire({ ...ASK_SLOT, wait: { timeoutMs: 30_000 } }));
  await clock.advance(500);
  expect([large.done, small.done]).toEqual([false, false]);
  await clock.advance(1_000);
  expect([large.done, small.done]).toEqual([false, true]);
  await (await small.promise).commit();
  await lease.commit();
  await clock.advance(0);
  expect(large.done).toBe(true);
});

test('a waiter for a slot does not delay an ask for another limit', async () => {
  const { limiter, clock } = await openLimiter();
  await limiter.acquire({ ...ASK_SLOT, consume: { slots: 2 } });
  const waiting = tracked(limiter.acquire({ ...ASK_SLOT, wait }));
  await clock.advance(1_000);
  const other = tracked(limiter.acquire({ ...ASK, wait }));
  await clock.advance(0);
  expect([waiting.done, other.done]).toEqual([false, true]);
  await limiter.close();
});

test('a waiter that a slow limit refused does not delay waiters that a fast limit refused', async () => {
  const { limiter, clock } = await openLimiter({
    limits: [Limit.perSecond('fast', 10), Limit.perMinute('slow', 6, { burst: 100 })],
  });
  const of = (consume: Record<string, number>) => ({ entityId: 'user-1', resource: 'gpt-4', consume });
  await limiter.acquire(of({ fast: 10, slow: 100 }));
  const both = tracked(limiter.acquire({ ...of({ fast: 1, slow: 1 }), wait: { timeoutMs: 20_000 } }));
  const fast = tracked(limiter.acquire({ ...of({ fast: 1 }), wait }));
  await clock.advance(100);
  expect([both.done, fast.done]).toEqual([false, true]);
  await clock.advance(9_900);
  expect(both.done).toBe(true);
});

test('a waiter that was denied as contended asks again soon', async () => {
  const { limiter, clock, store } = await openLimiter();
  store.start({ only: ['consume'], kind: 'contended', calls: 1 });
  const waiting = tracked(limiter.acquire({ ...ASK, wait }));
  await clock.advance(99);
  expect(waiting.done).toBe(false);
  await clock.advance(1);
  expect(waiting.done).toBe(true);
  expect(clock.sleepers).toBe(0);
});

test('an ask that can never fit is refused at once, also while others wait', async () => {
  const { limiter, clock } = await drained();
  const first = tracked(limiter.acquire({ ...ASK, wait }));
  await clock.advance(10);
  await expect(limiter.acquire({ ...ASK, consume: { rpm: 61 }, wait })).rejects.toMatchObject({
    code: 'limit.impossible',
  });
  await clock.advance(1_000);
  expect(first.done).toBe(true);
});

async function full(): Promise<Awaited<ReturnType<typeof openLimiter>> & { readonly end: () => Promise<void> }> {
  const opened = await openLimiter();
  const lease = await opened.limiter.acquire({ ...ASK_SLOT, consume: { slots: 2 } });
  return { ...opened, end: () => lease.commit() };
}

test('a wait for a slot is granted as soon as this process gives one back', async () => {
  const { limiter, clock, end } = await full();
  const waiting = tracked(limiter.acquire({ ...ASK_SLOT, wait }));
  await clock.advance(1);
  expect(waiting.done).toBe(false);
  await end();
  await clock.advance(0);
  expect(waiting.done).toBe(true);
});

test('a wait for a slot asks again within 250 ms, because other processes give slots back too', async () => {
  const { limiter, clock, store } = await full();
  const waiting = tracked(limiter.acquire({ ...ASK_SLOT, wait }));
  await clock.advance(1);
  const asked = store.calls.filter((call) => call === 'consume').length;
  await clock.advance(2_500);
  const again = store.calls.filter((call) => call === 'consume').length - asked;
  expect(again).toBeGreaterThanOrEqual(10);
  expect(again).toBeLessThanOrEqual(25);
  await clock.advance(3_000);
  await expect(waiting.promise).rejects.toMatchObject({ code: 'limit.exceeded' });
});

test('a wait for a slot that times out reports the latest time at which a slot returns', async () => {
  const { limiter, clock } = await full();
  const waiting = limiter.acquire({ ...ASK_SLOT, wait });
  const denied = expect(waiting).rejects.toMatchObject({ code: 'limit.exceeded', retryAfterMs: 55_000 });
  await clock.advance(5_000);
  await denied;
  expect(clock.sleepers).toBe(0);
});

test('a wait for a slot is granted when a holder expires', async () => {
  const { limiter, clock } = await full();
  const waiting = tracked(limiter.acquire({ ...ASK_SLOT, wait: { timeoutMs: 120_000 } }));
  await clock.advance(59_999);
  expect(waiting.done).toBe(false);
  await clock.advance(251);
  expect(waiting.done).toBe(true);
});

test('a wait for a slot of a parent is granted when another child gives one back', async () => {
  const { limiter, clock } = await openLimiter();
  await family(limiter);
  const lease = await limiter.acquire({ ...ASK_SLOT, entityId: 'a', consume: { slots: 2 } });
  const waiting = tracked(limiter.acquire({ ...ASK_SLOT, entityId: 'b', wait }));
  await clock.advance(1);
  await lease.commit();
  await clock.advance(0);
  expect(waiting.done).toBe(true);
});

async function family(limiter: RateLimiter): Promise<void> {
  await limiter.entities.create({ id: 'p' });
  await limiter.entities.create({ id: 'a', parentId: 'p', cascade: true });
  await limiter.entities.create({ id: 'b', parentId: 'p', cascade: true });
}
