import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Limit } from '../../../core/limit.js';
import { RateLimiter } from '../../../limiter/rate-limiter.js';
import { memory } from '../../embedded/memory.js';
import { StoreClock } from './store-clock.js';

const START_MS = Date.parse('2027-01-15T08:00:00.250Z');

/** A machine that follows a store. Time passes on both, and each clock of the machine can be moved separately. */
function machine() {
  const times = { storeMs: START_MS, wallMs: START_MS, monotonicMs: 0, uptimeMs: 0 };
  const clock = new StoreClock({
    wallMs: () => times.wallMs,
    monotonicMs: () => times.monotonicMs,
    uptimeMs: () => times.uptimeMs,
  });
  const pass = (ms: number): void => {
    for (const name of ['storeMs', 'wallMs', 'monotonicMs', 'uptimeMs'] as const) times[name] += ms;
  };
  const request = (wrongByMs = 0, tookMs = 0): void => {
    const observe = clock.startRequest();
    pass(tookMs / 2);
    const date = new Date(times.storeMs + wrongByMs).toUTCString();
    pass(tookMs / 2);
    observe(date);
  };
  return { times, clock, pass, request };
}

test('the time of the store is unknown until an answer agrees with this machine', () => {
  const { clock, request } = machine();
  expect(clock.now()).toBeNull();
  request();
  expect([clock.now(), clock.isInDoubt]).toEqual([START_MS, false]);
});

test('a machine that was wrong when it started is corrected by two answers', () => {
  const times = { wallMs: START_MS - 600_000 };
  const clock = new StoreClock({ wallMs: () => times.wallMs, monotonicMs: () => 0, uptimeMs: () => 0 });
  const date = new Date(START_MS).toUTCString();
  clock.startRequest()(date);
  expect([clock.now(), clock.isInDoubt]).toEqual([null, true]);
  clock.startRequest()(date);
  expect(Math.abs((clock.now() ?? 0) - START_MS)).toBeLessThanOrEqual(500);
});

test('a machine whose monotonic clock stopped for an hour has the right time after two answers', () => {
  const { times, clock, request } = machine();
  request();
  // As in a paused virtual machine: even the uptime does not show the pause.
  times.storeMs += 3_600_000;
  request();
  expect(clock.now()).toBe(START_MS);
  request();
  expect(Math.abs((clock.now() ?? 0) - times.storeMs)).toBeLessThanOrEqual(500);
});

test('the time never goes back: after a negative correction it stops until the corrected time catches up', () => {
  const { times, clock, pass, request } = machine();
  request();
  expect(clock.now()).toBe(START_MS);
  times.storeMs -= 5_000;
  request();
  request();
  expect(clock.now()).toBe(START_MS);
  pass(4_000);
  expect(clock.now()).toBe(START_MS);
  pass(2_000);
  expect(clock.now()).toBeGreaterThan(START_MS);
});

const RATE_PER_SECOND = 10;
const CAPACITY = 100;
const LIMITS = [Limit.perSecond('jobs', RATE_PER_SECOND, { burst: CAPACITY })];
const OF = { entityId: 'pot', resource: 'r' };

const happening = fc.oneof(
  fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 20_000 }) }),
  fc.record({ kind: fc.constant('step' as const), ms: fc.integer({ min: -3_600_000, max: 3_600_000 }) }),
  fc.record({ kind: fc.constant('suspend' as const), ms: fc.integer({ min: 5_000, max: 3_600_000 }) }),
  fc.record({ kind: fc.constant('wrong answer' as const), ms: fc.integer({ min: -3_600_000, max: 3_600_000 }) }),
);

test('a process whose clock steps at any instant changes what others are granted by at most 2 s of rate', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(happening, { maxLength: 12 }), async (happenings) => {
      const { times, clock, pass, request } = machine();
      request();
      const store = memory();
      const stepped = await RateLimiter.open(store, { limits: LIMITS, clock: { now: () => clock.now() ?? 0 } });
      const other = await RateLimiter.open(store, { limits: LIMITS, clock: { now: () => times.storeMs } });
      let granted = 0;
      const takeAll = async (limiter: RateLimiter): Promise<void> => {
        while ((await limiter.tryAcquire({ ...OF, consume: { jobs: 1 } })).granted) granted += 1;
      };
      for (const { kind, ms } of happenings) {
        if (kind === 'pass') pass(ms);
        else if (kind === 'step') times.wallMs += ms;
        else if (kind === 'suspend') for (const name of ['storeMs', 'wallMs', 'uptimeMs'] as const) times[name] += ms;
        else request(ms);
        await takeAll(stepped);
        request(0, ms % 300);
        await takeAll(other);
        const seconds = (times.storeMs - START_MS) / 1_000;
        expect(granted).toBeLessThanOrEqual(CAPACITY + RATE_PER_SECOND * (seconds + 2));
        const waitMs = await other.timeUntilAvailable({ ...OF, consume: { jobs: 1 } });
        expect(waitMs).toBeLessThanOrEqual(2_000 + 1_000 / RATE_PER_SECOND);
      }
    }),
    { numRuns: 150 },
  );
});
