import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { distantBackend } from '../../../tests/support/models/distant-backend.js';
import { memory } from '../../backends/embedded/memory.js';
import { Random } from '../../testing/conformance/kit/random.js';
import { Limit } from '../../core/limit.js';
import { fakeClock } from '../../testing/fake-clock.js';
import type { Decision } from '../acquire/decision.js';
import type { AcquireRequest } from '../acquire/request.js';
import { RateLimiter } from '../rate-limiter.js';

const of = (consume: Record<string, number>) => ({ entityId: 'user-1', resource: 'gpt-4', consume });
const ASK = of({ rps: 1 });
const wait = { timeoutMs: 60_000 };

/** A limiter whose store answers after `roundTripMs`, on a fake clock. */
async function openFar(limits: readonly Limit[], roundTripMs: number) {
  const clock = fakeClock();
  const store = distantBackend(memory(), clock, roundTripMs);
  const limiter = await RateLimiter.open(store.backend, { limits, clock });
  /** The value of the call and how long it took. Advances the clock by 1 ms until the call ends. */
  const take = async <T>(call: Promise<T>): Promise<{ readonly value: T; readonly ms: number }> => {
    const startMs = clock.now();
    const ended = { yet: false };
    const end = (): void => void (ended.yet = true);
    call.then(end, end);
    await clock.advance(0);
    while (!ended.yet) await clock.advance(1);
    return { value: await call, ms: clock.now() - startMs };
  };
  return { clock, store, limiter, take };
}

describe('waits with a distant store', () => {
  test.each([60_000, 1_000])(
    '300 asks of a free bucket that wait for up to %i ms take one round trip and 300 calls, as without a wait',
    async (timeoutMs) => {
      const { limiter, store, take } = await openFar([Limit.perSecond('rps', 1_000)], 5);
      const asks = Array.from({ length: 300 }, async () => limiter.tryAcquire({ ...ASK, wait: { timeoutMs } }));
      const { value, ms } = await take(Promise.all(asks));
      expect({ ms, granted: value.filter(({ granted }) => granted).length }).toEqual({ ms: 5, granted: 300 });
      expect(store.calls.length).toBe(300);
    },
  );

  test('an ask for a free limit takes one round trip while another call waits for a slot', async () => {
    const { clock, limiter, take } = await openFar([Limit.perSecond('rps', 1_000), Limit.concurrent('slots', 1)], 5);
    await take(limiter.acquire(of({ slots: 1 })));
    const waiting = limiter.acquire({ ...of({ rps: 1, slots: 1 }), wait });
    waiting.catch(() => {});
    await clock.advance(1_000);
    const { value, ms } = await take(limiter.tryAcquire({ ...ASK, wait }));
    expect({ granted: value.granted, ms }).toEqual({ granted: true, ms: 5 });
    await take(limiter.close());
  });

  test.each([
    { rate: 25, capacity: 25 },
    { rate: 100, capacity: 100 },
    { rate: 100, capacity: 2 },
    { rate: 300, capacity: 10 },
    { rate: 1_000, capacity: 30 },
  ])('waiters take 99 % of a rate of $rate a second with a capacity of $capacity', async ({ rate, capacity }) => {
    const limit = Limit.custom('rps', { capacity, refillAmount: rate, refillPeriodMs: 1_000 });
    const { clock, store, limiter, take } = await openFar([limit], 20);
    await take(limiter.acquire(of({ rps: capacity })));
    const callsBefore = store.calls.length;
    let granted = 0;
    const waiters = rate * 5;
    for (let waiter = 0; waiter < waiters; waiter++) {
      limiter.acquire({ ...ASK, wait }).then(
        () => (granted += 1),
        () => {},
      );
    }
    await clock.advance(3_000);
    expect(granted).toBeGreaterThanOrEqual(rate * 3 * 0.99);
    expect(granted).toBeLessThanOrEqual(rate * 3);
    // Each waiter asks once in vain, and once when it is granted or its ask is in flight.
    expect(store.calls.length - callsBefore - waiters - granted).toBeLessThanOrEqual(Math.ceil(rate / 25));
    await take(limiter.close());
    // The asks in flight are answered, and their tokens given back.
    await clock.advance(100);
    expect(clock.sleepers).toBe(0);
  });

  test.each([{ awayMs: 5 }, { awayMs: 20 }, { awayMs: 100 }])(
    'waiters take 97 % of a rate of 1,000 a second, in at most 50 waves a second, from a store $awayMs ms away',
    async ({ awayMs }) => {
      const seeded = new Random(1);
      vi.spyOn(Math, 'random').mockImplementation(() => seeded.whole(0, 2 ** 32 - 1) / 2 ** 32);
      const { clock, limiter, take } = await openFar([Limit.perSecond('rps', 1_000)], awayMs);
      await take(limiter.acquire(of({ rps: 1_000 })));
      const grantedAtMs: number[] = [];
      for (let waiter = 0; waiter < 4_000; waiter++) {
        limiter.acquire({ ...ASK, wait }).then(
          () => grantedAtMs.push(clock.now()),
          () => {},
        );
      }
      await clock.advance(1_000);
      const before = grantedAtMs.length;
      await clock.advance(2_000);
      expect(grantedAtMs.length - before).toBeGreaterThanOrEqual(2_000 * 0.97);
      expect(grantedAtMs.length).toBeLessThanOrEqual(3_000);
      // The grants of one wave arrive at one instant.
      expect(new Set(grantedAtMs.slice(before)).size).toBeLessThanOrEqual(100);
      await take(limiter.close());
      vi.restoreAllMocks();
    },
  );

  test('calls that arrive while others wait make one ask together, not one each', async () => {
    const { clock, store, limiter, take } = await openFar([Limit.perSecond('rps', 10)], 20);
    await take(limiter.acquire(of({ rps: 10 })));
    const line = [limiter.acquire({ ...ASK, wait })];
    await clock.advance(30);
    const callsBefore = store.calls.length;
    for (let waiter = 0; waiter < 50; waiter++) line.push(limiter.acquire({ ...ASK, wait }));
    await clock.advance(20);
    expect(store.calls.length - callsBefore).toBe(1);
    await clock.advance(6_000);
    await Promise.all(line);
    expect(clock.sleepers).toBe(0);
  });

  test('several slots that return at once are granted to as many waiters within one round trip', async () => {
    const { clock, limiter, take } = await openFar([Limit.concurrent('slots', 4)], 20);
    const { value: lease } = await take(limiter.acquire(of({ slots: 4 })));
    const waiters = Array.from({ length: 6 }, async () => limiter.tryAcquire({ ...of({ slots: 1 }), wait }));
    let granted = 0;
    for (const waiter of waiters) {
      waiter.then(
        (decision) => (granted += decision.granted ? 1 : 0),
        () => {},
      );
    }
    await clock.advance(50);
    await take(lease.commit());
    await clock.advance(20);
    expect(granted).toBe(4);
    await take(limiter.close());
    await Promise.allSettled(waiters);
  });
});

describe('properties of waiting', () => {
  /** One caller: when it asks, for how many tokens, and whether it waits. */
  const caller = fc.record({
    atMs: fc.integer({ min: 0, max: 400 }),
    tokens: fc.integer({ min: 1, max: 3 }),
    waits: fc.boolean(),
  });

  test('waiters with equal asks are granted in the order of their arrival', async () => {
    const callers = fc.array(fc.record({ atMs: fc.integer({ min: 30, max: 400 }), waits: fc.boolean() }), {
      minLength: 1,
      maxLength: 25,
    });
    const property = fc.asyncProperty(callers, fc.constantFrom(1, 20), async (asks, roundTripMs) => {
      const { clock, limiter, take } = await openFar([Limit.perSecond('rps', 20)], roundTripMs);
      await take(limiter.acquire(of({ rps: 20 })));
      const startMs = clock.now();
      const order: number[] = [];
      const calls: Promise<unknown>[] = [];
      const callWaiting = (): void => {
        const at = calls.length;
        calls.push(limiter.acquire({ ...ASK, wait }).then(() => order.push(at)));
      };
      // Creates a line first, because the store decides the order of first asks that overlap.
      for (let ahead = 0; ahead < 10; ahead++) callWaiting();
      await clock.advance(roundTripMs);
      for (const { atMs, waits } of asks.toSorted((a, b) => a.atMs - b.atMs)) {
        await clock.advance(Math.max(0, startMs + atMs - clock.now()));
        if (waits) callWaiting();
        else calls.push(limiter.tryAcquire(ASK));
      }
      await clock.advance(10_000);
      await Promise.all(calls);
      expect(order).toEqual(order.toSorted((a, b) => a - b));
      expect(clock.sleepers).toBe(0);
    });
    await fc.assert(property, { numRuns: 40 });
  });

  test('an ask that waits is granted whenever the same ask without a wait would be, within the same round trip', async () => {
    let granted = 0;
    const property = fc.asyncProperty(
      fc.array(caller, { maxLength: 10 }),
      fc.record({ rps: fc.integer({ min: 0, max: 3 }), slots: fc.integer({ min: 0, max: 1 }) }),
      async (before, consume) => {
        const outcomes: { readonly granted: boolean; readonly ms: number }[] = [];
        for (const isWilling of [false, true]) {
          const limits = [Limit.perSecond('rps', 20, { burst: 5 }), Limit.concurrent('slots', 1)];
          const { clock, limiter, take } = await openFar(limits, 20);
          const startMs = clock.now();
          const held = limiter.acquire(of({ slots: 1 }));
          for (const { atMs, tokens, waits } of before.toSorted((a, b) => a.atMs - b.atMs)) {
            await clock.advance(Math.max(0, startMs + atMs - clock.now()));
            // The other callers wait for the slot, or take from the rate without waiting.
            const ask = waits ? { ...of({ slots: 1 }), wait } : of({ rps: tokens });
            limiter.tryAcquire(ask).catch(() => {});
          }
          await clock.advance(100);
          await held;
          const ask = limiter.tryAcquire({ ...of(consume), ...(isWilling ? { wait: { timeoutMs: 1 } } : {}) });
          const { value, ms }: { value: Decision; ms: number } = await take(ask);
          outcomes.push({ granted: value.granted, ms });
          await take(limiter.close());
        }
        const [plain, willing] = outcomes;
        if (!plain!.granted) return;
        granted += 1;
        expect(willing).toEqual(plain);
      },
    );
    await fc.assert(property, { numRuns: 40 });
    expect(granted).toBeGreaterThan(0);
  });

  test('waiters are never granted more than the capacity and the refill', async () => {
    const property = fc.asyncProperty(fc.array(caller, { minLength: 1, maxLength: 20 }), async (asks) => {
      const { clock, limiter } = await openFar([Limit.perSecond('rps', 10, { burst: 5 })], 20);
      const startMs = clock.now();
      let granted = 0;
      const calls: Promise<void>[] = [];
      const take = async (ask: AcquireRequest, tokens: number): Promise<void> => {
        const decision = await limiter.tryAcquire(ask);
        if (!decision.granted) return;
        granted += tokens;
        expect(granted).toBeLessThanOrEqual(5 + Math.floor(((clock.now() - startMs) * 10) / 1_000));
      };
      for (const { atMs, tokens, waits } of asks.toSorted((a, b) => a.atMs - b.atMs)) {
        await clock.advance(Math.max(0, startMs + atMs - clock.now()));
        const ask = { ...of({ rps: tokens }), ...(waits ? { wait: { timeoutMs: 5_000 } } : {}) };
        calls.push(take(ask, tokens));
      }
      await clock.advance(10_000);
      await Promise.all(calls);
      expect(clock.sleepers).toBe(0);
    });
    await fc.assert(property, { numRuns: 40 });
  });

  test('every wait ends within its timeout plus the round trips of its last ask, and leaves no timer', async () => {
    const call = fc.record({
      atMs: fc.integer({ min: 0, max: 600 }),
      entityId: fc.constantFrom('a', 'b', 'p'),
      rps: fc.integer({ min: 0, max: 4 }),
      slots: fc.integer({ min: 0, max: 2 }),
      timeoutMs: fc.integer({ min: 1, max: 1_500 }),
      holdsForMs: fc.integer({ min: 0, max: 500 }),
      leavesAfterMs: fc.option(fc.integer({ min: 0, max: 800 })),
    });
    const property = fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 20 }), async (calls) => {
      const { clock, limiter } = await openFar(
        [Limit.perSecond('rps', 10, { burst: 4 }), Limit.concurrent('slots', 2)],
        20,
      );
      await limiter.entities.create({ id: 'p' });
      for (const id of ['a', 'b']) await limiter.entities.create({ id, parentId: 'p', cascade: true });
      let held = 0;
      const live = async (one: (typeof calls)[number]): Promise<void> => {
        await clock.sleep(one.atMs);
        const { entityId, rps, slots, timeoutMs, holdsForMs, leavesAfterMs } = one;
        const stop = new AbortController();
        if (leavesAfterMs !== null) void clock.sleep(leavesAfterMs).then(() => stop.abort(new Error('left')));
        const startMs = clock.now();
        const request = { ...of({ rps, slots }), entityId, wait: { timeoutMs }, signal: stop.signal };
        const lease = await limiter.acquire(request).catch(() => null);
        const tookMs = clock.now() - startMs;
        expect(tookMs).toBeLessThanOrEqual(Math.min(timeoutMs + 40, leavesAfterMs ?? Number.POSITIVE_INFINITY));
        if (lease === null) return;
        held += slots;
        expect(held).toBeLessThanOrEqual(2);
        await clock.sleep(holdsForMs);
        held -= slots;
        await lease.commit();
      };
      const all = Promise.all(calls.map(live));
      await clock.advance(10_000);
      await all;
      expect(clock.sleepers).toBe(0);
    });
    await fc.assert(property, { numRuns: 60 });
  });
});
