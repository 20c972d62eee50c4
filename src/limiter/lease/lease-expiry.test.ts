import { expect, test } from 'vitest';
import { ASK, ASK_SLOT, openLimiter } from '../../../tests/support/models/open-limiter.js';

test('a lease without a holder has no expiry', async () => {
  const { limiter, clock } = await openLimiter();
  const lease = await limiter.acquire(ASK);
  await clock.advance(3_600_000);
  expect(lease).toMatchObject({ expiresAt: null, state: 'open' });
  await lease.extend();
});

test('a lease with a requested lifetime has an expiry, also without slots', async () => {
  const { limiter, clock } = await openLimiter();
  const lease = await limiter.acquire({ ...ASK, leaseTtlMs: 5_000 });
  expect(lease.expiresAt).toEqual(new Date(clock.now() + 5_000));
});

test('extend moves the expiry by the lifetime of the request', async () => {
  const { limiter, clock } = await openLimiter();
  const lease = await limiter.acquire({ ...ASK_SLOT, leaseTtlMs: 7_000 });
  await clock.advance(6_999);
  await lease.extend();
  expect(lease.expiresAt).toEqual(new Date(clock.now() + 7_000));
});

test('at its expiry a lease becomes expired and its signal aborts, and not before', async () => {
  const { limiter, clock } = await openLimiter();
  const lease = await limiter.acquire({ ...ASK_SLOT, leaseTtlMs: 5_000 });
  const { signal } = lease;
  await clock.advance(4_999);
  expect([signal.aborted, lease.state]).toEqual([false, 'open']);
  await clock.advance(1);
  expect([signal.aborted, lease.state]).toEqual([true, 'expired']);
  expect(signal.reason).toMatchObject({ code: 'lease.closed' });
});

test('after an extension to an earlier time the signal aborts at that time', async () => {
  const { limiter, clock } = await openLimiter();
  const lease = await limiter.acquire(ASK_SLOT);
  const { signal } = lease;
  await lease.extend(5_000);
  await clock.advance(5_000);
  expect([signal.aborted, lease.state]).toEqual([true, 'expired']);
});

test('the signal of an extended lease does not abort', async () => {
  const { limiter, clock } = await openLimiter();
  const lease = await limiter.acquire({ ...ASK_SLOT, leaseTtlMs: 5_000 });
  const { signal } = lease;
  await clock.advance(4_000);
  await lease.extend();
  await clock.advance(4_000);
  expect(signal.aborted).toBe(false);
  await lease.commit();
  expect(clock.sleepers).toBe(0);
});

test('a lease that gave its slots back does not expire', async () => {
  const ends: unknown[] = [];
  const { limiter, clock } = await openLimiter({
    onEvent: (event) => event.type === 'lease-end' && ends.push(event.how),
  });
  const lease = await limiter.acquire({ ...ASK_SLOT, leaseTtlMs: 5_000 });
  const { signal } = lease;
  await lease.release();
  expect(clock.sleepers).toBe(0);
  await clock.advance(5_000);
  expect([signal.aborted, lease.state]).toEqual([false, 'open']);
  await lease.commit({ tpm: 700 });
  expect(ends).toEqual(['committed']);
});

test('closing a limiter leaves no timer of the leases that it releases', async () => {
  const { limiter, clock } = await openLimiter();
  const { signal } = await limiter.acquire(ASK_SLOT);
  await limiter.close();
  expect([clock.sleepers, signal.aborted]).toEqual([0, false]);
});

test('extending a lease whose slot another lease has taken throws and aborts the signal', async () => {
  const { limiter, clock } = await openLimiter();
  const lease = await limiter.acquire({ ...ASK_SLOT, consume: { slots: 2 }, leaseTtlMs: 5_000 });
  await clock.advance(5_000);
  await limiter.acquire(ASK_SLOT);
  const { signal } = lease;
  await expect(lease.extend()).rejects.toMatchObject({ code: 'lease.closed', state: 'expired' });
  expect(signal.aborted).toBe(true);
  await lease.release();
  expect(await limiter.available(ASK)).toMatchObject({ slots: 1 });
});

test('a commit after the lease is lost keeps what rates took', async () => {
  const { limiter, clock } = await openLimiter();
  const lease = await limiter.acquire({ ...ASK_SLOT, consume: { rpm: 30, slots: 2 }, leaseTtlMs: 5_000 });
  await clock.advance(5_000);
  await limiter.acquire({ ...ASK, consume: { slots: 1 } });
  await lease.commit();
  expect(lease.state).toBe('committed');
  expect(await limiter.available(ASK)).toMatchObject({ rpm: 35, slots: 1 });
});
