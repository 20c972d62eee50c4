import { expect, test } from 'vitest';
import { memory } from '../../backends/embedded/memory.js';
import { fakeClock } from '../../testing/fake-clock.js';
import { outage } from '../../testing/outage.js';
import { ASK, LIMITS } from '../../../tests/support/models/open-limiter.js';
import type { LimiterOptions } from '../options.js';
import { RateLimiter } from '../rate-limiter.js';

/** A store that does not answer when the process starts. */
function storeThatIsOut() {
  const clock = fakeClock();
  const store = outage(memory());
  const errors: string[] = [];
  store.start();
  const open = (options: LimiterOptions): Promise<RateLimiter> =>
    RateLimiter.open(store.backend, { limits: LIMITS, clock, onError: (_, where) => errors.push(where), ...options });
  return { clock, store, errors, open };
}

test.each([
  ['allow', 'open'],
  ['local', 'fallback'],
] as const)(
  'under %s the limiter opens, decides by the policy, and uses the store once it is back after 5 s',
  async (onUnavailable, decidedBy) => {
    const { clock, store, errors, open } = storeThatIsOut();
    const limiter = await open({ onUnavailable });
    expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy });
    await clock.advance(5_000);
    expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy });
    store.end();
    await clock.advance(1_000);
    expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'store' });
    expect(errors).toEqual(['opening the store (calls follow onUnavailable until it answers)']);
    await limiter.close();
  },
);

test('under block the limiter opens when the store answers within openMs', async () => {
  const { clock, store, errors, open } = storeThatIsOut();
  const opening = open({});
  await clock.advance(5_000);
  store.end();
  await clock.advance(1_000);
  const limiter = await opening;
  expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'store' });
  expect(errors).toEqual([]);
  await limiter.close();
});

test('under block the opening rejects after openMs, and leaves no timer', async () => {
  const { clock, open } = storeThatIsOut();
  const opening = open({ timeouts: { openMs: 3_000 } });
  const rejected = expect(opening).rejects.toMatchObject({ code: 'backend.unavailable' });
  await clock.advance(3_000);
  await rejected;
  expect(clock.sleepers).toBe(0);
});

test('a call does not wait for the opening in the background, and makes no call to the store', async () => {
  const { store, open } = storeThatIsOut();
  const limiter = await open({ onUnavailable: 'allow' });
  const before = store.calls.length;
  for (let call = 0; call < 10; call++) await limiter.tryAcquire(ASK);
  expect(store.calls).toHaveLength(before);
  await limiter.close();
});

test('closing ends the attempts in the background', async () => {
  const { clock, store, open } = storeThatIsOut();
  const limiter = await open({ onUnavailable: 'allow' });
  await limiter.close();
  const before = store.calls.length;
  await clock.advance(10_000);
  expect(store.calls).toHaveLength(before);
});

test('a namespace that does not exist rejects the opening at once, whatever the policy', async () => {
  for (const onUnavailable of ['block', 'allow', 'local'] as const) {
    const opening = RateLimiter.open(memory(), { namespace: 'acme', onUnavailable, clock: fakeClock() });
    await expect(opening).rejects.toMatchObject({ code: 'namespace.missing' });
  }
});
