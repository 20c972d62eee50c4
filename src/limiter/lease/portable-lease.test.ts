import { describe, expect, test } from 'vitest';
import { memory } from '../../backends/embedded/memory.js';
import type { Backend } from '../../backend.js';
import { BackendUnavailable } from '../../core/errors.js';
import { Limit } from '../../core/limit.js';
import { fakeClock } from '../../testing/fake-clock.js';
import { resolveOptions } from '../options.js';
import { RateLimiter } from '../rate-limiter.js';

const LIMITS = [Limit.perDay('tpd', 1_000), Limit.concurrent('slots', 4)];
const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { tpd: 50, slots: 1 }, portable: true };
const SECRET = 'a secret of the tests';

/** The store stays open when one of its limiters is closed. */
function shared(store: Backend): Backend {
  return { ...store, close: () => {} };
}

describe('portable leases of a limiter', () => {
  test('closing the limiter keeps the slots of a lease whose token was taken, and releases the others', async () => {
    const store = shared(memory());
    const options = { limits: LIMITS, leaseSecrets: [SECRET] as const };
    const [here, there] = [await RateLimiter.open(store, options), await RateLimiter.open(store, options)];
    const travelling = await here.acquire(ASK);
    await here.acquire(ASK);
    const token = await travelling.token();
    await here.close();
    expect(await there.available(ASK)).toEqual({ tpd: 900, slots: 3 });
    const resumed = await there.leases.resume(token);
    await resumed.commit();
    expect(await there.available(ASK)).toEqual({ tpd: 900, slots: 4 });
    await there.close();
  });

  test('closing the limiter of a second worker that resumed a lease leaves its slots to the first', async () => {
    const store = shared(memory());
    const options = { limits: LIMITS, leaseSecrets: [SECRET] as const };
    const open = async () => RateLimiter.open(store, options);
    const [here, first, second] = [await open(), await open(), await open()];
    const token = await (await here.acquire(ASK)).token();
    const work = await first.leases.resume(token);
    await second.leases.resume(token);
    await second.close();
    expect(await here.available(ASK)).toEqual({ tpd: 950, slots: 3 });
    await work.extend();
    await first.close();
    expect(await here.available(ASK)).toEqual({ tpd: 950, slots: 3 });
    await (await here.leases.resume(token)).commit({ tpd: 80 });
    expect(await here.available(ASK)).toEqual({ tpd: 920, slots: 4 });
    await here.close();
  });

  test.each(['allow', 'local'] as const)(
    'a lease that the outage policy %s has granted has no token, and can be ended',
    async (onUnavailable) => {
      const clock = fakeClock();
      const { backend, fail } = breakable(memory());
      const limiter = await RateLimiter.open(backend, { limits: LIMITS, leaseSecrets: [SECRET], onUnavailable, clock });
      await (await limiter.acquire(ASK)).rollback();
      fail(true);
      const lease = await limiter.acquire(ASK);
      expect(lease.decidedBy).not.toBe('store');
      await expect(lease.token()).rejects.toMatchObject({ code: 'input.invalid', field: 'portable' });
      await lease.adjust({ tpd: 5 }, { operationId: 'a' });
      await lease.commit();
    },
  );

  test('a signal of a lease aborts when another process has ended it', async () => {
    const store = shared(memory());
    const options = { limits: LIMITS, leaseSecrets: [SECRET] as const };
    const [here, there] = [await RateLimiter.open(store, options), await RateLimiter.open(store, options)];
    const lease = await here.acquire(ASK);
    const { signal } = lease;
    await (await there.leases.resume(await lease.token())).commit();
    expect(signal.aborted).toBe(false);
    await expect(lease.extend()).rejects.toMatchObject({ code: 'lease.closed', state: 'committed' });
    expect(signal.aborted).toBe(true);
  });
});

describe('the secrets of lease tokens', () => {
  test('secrets come from the options, or from the environment', () => {
    const env = {
      HEADGATE_LEASE_SECRET: 'secret of the environment',
      HEADGATE_LEASE_SECRET_PREVIOUS: 'its previous secret',
    };
    expect(resolveOptions({}, {}).leaseSecrets).toEqual([]);
    expect(resolveOptions({}, env).leaseSecrets).toEqual(['secret of the environment', 'its previous secret']);
    expect(resolveOptions({ leaseSecrets: [SECRET, undefined] }, env).leaseSecrets).toEqual([SECRET]);
  });

  test.each([[['short']], [[SECRET, 7]], ['a secret without a list'], [[SECRET, SECRET, SECRET]], [[null]]])(
    'secrets that are too short, too many or no text are refused: %j',
    (leaseSecrets) => {
      const resolve = (): unknown => resolveOptions({ leaseSecrets: leaseSecrets as never }, {});
      expect(resolve).toThrow(expect.objectContaining({ code: 'input.invalid', field: 'leaseSecrets' }));
    },
  );

  test('the message about a bad secret does not show it', () => {
    expect(() => resolveOptions({ leaseSecrets: ['tiny-secret'] }, {})).toThrow(/^(?!.*tiny-secret).*11 characters/);
    const env = { HEADGATE_LEASE_SECRET: 'tiny-secret' };
    expect(() => resolveOptions({}, env)).toThrow(/^(?!.*tiny-secret).*HEADGATE_LEASE_SECRET.*11 characters/);
  });
});

/** A store that can be switched off. */
function breakable(store: Backend): { readonly backend: Backend; readonly fail: (on: boolean) => void } {
  let isOut = false;
  const consume: Backend['consume'] = (call, request) => {
    if (isOut) throw new BackendUnavailable('the store is out', 'connection');
    return store.consume(call, request);
  };
  return { backend: { ...store, consume }, fail: (on) => (isOut = on) };
}
