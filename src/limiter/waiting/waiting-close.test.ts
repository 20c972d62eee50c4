import { expect, test } from 'vitest';
import { ASK, ASK_SLOT, LIMITS, openLimiter } from '../../../tests/support/models/open-limiter.js';
import { distantBackend } from '../../../tests/support/models/distant-backend.js';
import { memory } from '../../backends/embedded/memory.js';
import { fakeClock } from '../../testing/fake-clock.js';
import { RateLimiter } from '../rate-limiter.js';

const wait = { timeoutMs: 60_000 };
const CLOSED = { code: 'backend.unavailable', kind: 'closed' };

test('closing a limiter rejects every call that waits for a rate or a slot at once, and leaves no timer', async () => {
  const { limiter, clock } = await openLimiter();
  await limiter.acquire({ ...ASK_SLOT, consume: { rpm: 60, slots: 2 } });
  const waits = [
    limiter.acquire({ ...ASK, wait }),
    limiter.acquire({ ...ASK, wait }),
    limiter.acquire({ ...ASK_SLOT, consume: { slots: 1 }, wait }),
    limiter.run({ ...ASK_SLOT, consume: { slots: 1 }, wait }, () => 'never'),
  ].map((waiting) => expect(waiting).rejects.toMatchObject(CLOSED));
  await clock.advance(300);
  await limiter.close();
  await Promise.all(waits);
  expect(clock.sleepers).toBe(0);
  await expect(limiter.acquire({ ...ASK, wait })).rejects.toMatchObject(CLOSED);
});

test('closing a limiter rejects a call that waits after it was denied as contended', async () => {
  const { limiter, clock, store } = await openLimiter();
  store.start({ only: ['consume'], kind: 'contended' });
  const waiting = expect(limiter.acquire({ ...ASK, wait })).rejects.toMatchObject(CLOSED);
  await clock.advance(50);
  await limiter.close();
  await waiting;
  expect(clock.sleepers).toBe(0);
});

test('closing a limiter rejects the waits of every namespace of its store', async () => {
  const { limiter, clock } = await openLimiter();
  await limiter.namespaces.register('acme');
  const acme = await limiter.in('acme');
  await acme.acquire({ ...ASK, consume: { rpm: 60 } });
  const waiting = expect(acme.acquire({ ...ASK, wait })).rejects.toMatchObject(CLOSED);
  await clock.advance(10);
  await limiter.close();
  await waiting;
  expect(clock.sleepers).toBe(0);
});

test('closing a limiter of another namespace rejects only its own waits', async () => {
  const { limiter, clock } = await openLimiter();
  const same = await limiter.in('default');
  await limiter.acquire({ ...ASK, consume: { rpm: 60 } });
  const own = expect(same.acquire({ ...ASK, wait })).rejects.toMatchObject(CLOSED);
  const other = limiter.acquire({ ...ASK, wait });
  await clock.advance(10);
  await same.close();
  await own;
  // The rejected call does not keep its place.
  await clock.advance(990);
  expect((await other).state).toBe('open');
  expect(clock.sleepers).toBe(0);
});

test('closing a limiter rejects a call whose ask is in flight, and gives back what it takes, whatever the policy', async () => {
  const clock = fakeClock();
  const store = distantBackend(memory(), clock, 20);
  const owner = await RateLimiter.open(store.backend, { limits: LIMITS, clock, onUnavailable: 'allow' });
  const limiter = await owner.in('default');
  const waiting = expect(limiter.acquire({ ...ASK_SLOT, wait })).rejects.toMatchObject(CLOSED);
  await clock.advance(15);
  await limiter.close();
  await waiting;
  await clock.advance(100);
  const left = owner.available(ASK);
  await clock.advance(20);
  expect(await left).toMatchObject({ rpm: 60, slots: 2 });
  expect(clock.sleepers).toBe(0);
});
