import { expect, test } from 'vitest';
import { distantBackend } from '../../../tests/support/models/distant-backend.js';
import { ASK, ASK_SLOT, LIMITS, openLimiter } from '../../../tests/support/models/open-limiter.js';
import { memory } from '../../backends/embedded/memory.js';
import { fakeClock } from '../../testing/fake-clock.js';
import { RateLimiter } from '../rate-limiter.js';

/** Opens a second limiter on the same store, which stays open when the first one closes. */
async function besideAnother(options = {}) {
  const opened = await openLimiter(options);
  const other = await RateLimiter.open(opened.store.backend, { limits: LIMITS, clock: opened.clock });
  return { ...opened, other, slotsLeft: async () => (await other.available(ASK))['slots'] };
}

test('closing a limiter gives the slots of open leases back, and keeps what they took from rates', async () => {
  const { limiter, other, slotsLeft } = await besideAnother();
  await limiter.acquire(ASK_SLOT);
  await limiter.acquire(ASK_SLOT);
  expect(await slotsLeft()).toBe(0);
  await limiter.close();
  expect(await other.available(ASK)).toEqual({ rpm: 58, tpm: 5_000, slots: 2 });
});

test('closing a limiter with leases: keep leaves the slots taken until they expire', async () => {
  const { limiter, slotsLeft, clock } = await besideAnother();
  await limiter.acquire(ASK_SLOT);
  await limiter.close({ leases: 'keep' });
  expect(await slotsLeft()).toBe(1);
  await clock.advance(60_000);
  expect(await slotsLeft()).toBe(2);
});

test('closing a limiter gives nothing back for leases that have ended', async () => {
  const { limiter, store } = await besideAnother();
  await (await limiter.acquire(ASK_SLOT)).commit();
  await (await limiter.acquire(ASK_SLOT)).release();
  const before = store.calls.length;
  await limiter.close();
  expect(store.calls.slice(before)).toEqual(['close']);
});

test('closing a limiter ends in time when the store does not answer, and leaves no timer', async () => {
  const { limiter, store, clock, errors } = await besideAnother();
  await limiter.acquire(ASK_SLOT);
  store.start({ mode: 'hang', only: ['adjust'] });
  const closing = limiter.close({ timeoutMs: 2_000 });
  await clock.advance(2_000);
  await closing;
  expect(errors).toMatchObject([{ where: 'closing with open leases', error: { code: 'backend.unavailable' } }]);
  expect(clock.sleepers).toBe(0);
});

test('closing a limiter gives back a slot that is granted meanwhile', async () => {
  const clock = fakeClock();
  const backend = memory();
  const distant = await RateLimiter.open(distantBackend(backend, clock, 20).backend, { limits: LIMITS, clock });
  const other = await RateLimiter.open(backend, { limits: LIMITS, clock });
  await other.available(ASK);
  const held = distant.acquire(ASK_SLOT);
  await clock.advance(100);
  await held;
  const late = distant.acquire(ASK_SLOT);
  const closing = distant.close();
  await clock.advance(200);
  await Promise.allSettled([late, closing]);
  expect((await other.available(ASK))['slots']).toBe(2);
});

test('closing a limiter without leases waits for a slot that is granted meanwhile, and gives it back before the store closes', async () => {
  const clock = fakeClock();
  const backend = memory();
  const { backend: far } = distantBackend(backend, clock, 20);
  const sequence: string[] = [];
  const adjust: typeof far.adjust = async (...args) => {
    const results = await far.adjust(...args);
    sequence.push('given back');
    return results;
  };
  const close = (): void => void sequence.push('closed');
  const distant = await RateLimiter.open({ ...far, adjust, close }, { limits: LIMITS, clock });
  const late = distant.acquire(ASK_SLOT);
  const closing = distant.close();
  await clock.advance(200);
  await Promise.all([late, closing]);
  expect(sequence).toEqual(['given back', 'closed']);
  const other = await RateLimiter.open(backend, { limits: LIMITS, clock });
  expect((await other.available(ASK))['slots']).toBe(2);
});

test('closing a limiter does not wait for an ask without slots', async () => {
  const { limiter, store, clock } = await openLimiter();
  await limiter.acquire(ASK);
  store.start({ mode: 'hang', only: ['consume'] });
  const asking = limiter.acquire(ASK).catch(() => {});
  await limiter.close();
  await clock.advance(1_000);
  await asking;
});

test('a commit after the limiter is closed fails with advice', async () => {
  const { limiter } = await besideAnother();
  const lease = await limiter.acquire(ASK_SLOT);
  await limiter.close({ leases: 'keep' });
  await expect(lease.commit()).rejects.toMatchObject({
    code: 'backend.unavailable',
    kind: 'closed',
    message: expect.stringContaining('the limiter is closed. Commit or roll back leases before close()') as string,
  });
});

test('a commit without a holder needs no store and succeeds after the limiter is closed', async () => {
  const { limiter } = await besideAnother();
  const lease = await limiter.acquire(ASK);
  await limiter.close();
  await lease.commit();
  expect(lease.state).toBe('committed');
});

test('closing a limiter refuses unknown options', async () => {
  const { limiter } = await openLimiter();
  await expect(limiter.close({ lease: 'keep' } as never)).rejects.toMatchObject({ field: 'options.lease' });
  await expect(limiter.close({ leases: 'drop' as never })).rejects.toMatchObject({ field: 'leases' });
});
