import { describe, expect, test } from 'vitest';
import { SECRET } from '../../tests/support/server/request-server.js';
import { Limit } from '../core/limit.js';
import { RateLimiter } from '../limiter/rate-limiter.js';
import { createServer } from '../server/server.js';
import { fakeClock } from '../testing/fake-clock.js';
import { HeadgateClient } from './client.js';
import type { ClientOptions } from './http.js';
import type { RemoteLease } from './remote-lease.js';

const KEY = { entityId: 'hot', resource: 'r' };
/** More than the traces that a bucket keeps. */
const OTHERS = 120;

/** A client of a server on memory. `loseNext`: the next answer is lost, after `meanwhile`. */
async function connected(options: Pick<ClientOptions, 'retries'> = {}) {
  const clock = fakeClock();
  const limiter = await RateLimiter.open('memory:', {
    limits: [
      Limit.custom('tpd', { capacity: 1_000_000, refillAmount: 1, refillPeriodMs: 2_592_000_000 }),
      Limit.concurrent('slots', 50),
    ],
    leaseSecrets: [SECRET],
    onExpiry: 'refund',
    clock,
  });
  const server = createServer(limiter);
  let meanwhile: (() => Promise<void>) | null = null;
  const fetching: typeof fetch = async (input, init) => {
    const response = await server.fetch(new Request(input, init));
    const work = meanwhile;
    if (work === null) return response;
    meanwhile = null;
    await work();
    throw new TypeError('fetch failed');
  };
  const client = new HeadgateClient('http://headgate.test', { fetch: fetching, ...options });
  const loseNext = (work: () => Promise<void>): void => {
    meanwhile = work;
  };
  /** The traces of ended leases are dropped once many others of the bucket have ended. */
  const endOthers = async (): Promise<void> => {
    for (let other = 0; other < OTHERS; other++) {
      await (await limiter.acquire({ ...KEY, consume: { slots: 1 }, portable: true })).commit();
    }
  };
  const used = async (): Promise<number> => 1_000_000 - ((await limiter.available(KEY))['tpd'] ?? 0);
  return { client, limiter, clock, loseNext, endOthers, used };
}

describe('an operation that is sent again after the trace of its lease was dropped', () => {
  test('charges a commit once, and answers what it answered', async () => {
    const { client, loseNext, endOthers, used } = await connected();
    const lease = await client.acquire({ ...KEY, consume: { tpd: 500, slots: 1 } });
    loseNext(endOthers);
    await lease.commit({ tpd: 1_840 });
    expect(await used()).toBe(1_840);
    expect(lease.consumed).toEqual({ tpd: 1_840 });
  });

  test.each([
    ['settle', (lease: RemoteLease) => lease.settle({ tpd: 1_840 })],
    ['adjust', (lease: RemoteLease) => lease.adjust({ tpd: 1_340 })],
  ])('charges a lease once for %s that another process has committed meanwhile', async (_name, operate) => {
    const { client, limiter, loseNext, endOthers, used } = await connected();
    const lease = await client.acquire({ ...KEY, consume: { tpd: 500, slots: 1 } });
    loseNext(async () => {
      await (await limiter.leases.resume(lease.token ?? '')).commit();
      await endOthers();
    });
    await operate(lease);
    expect(await used()).toBe(1_840);
    expect(lease.consumed).toMatchObject({ tpd: 1_840 });
  });

  test('charges a commit once that the caller has sent again', async () => {
    const { client, loseNext, endOthers, used } = await connected({ retries: 0 });
    const lease = await client.acquire({ ...KEY, consume: { tpd: 500, slots: 1 } });
    loseNext(endOthers);
    await expect(lease.commit({ tpd: 1_840 })).rejects.toMatchObject({ code: 'backend.unavailable' });
    await lease.commit({ tpd: 1_840 });
    expect(await used()).toBe(1_840);
  });

  test('charges the whole amount after the expiry, which may have come before the first request', async () => {
    const { client, limiter, clock, loseNext, used } = await connected();
    const lease = await client.acquire({ ...KEY, consume: { tpd: 500, slots: 1 } });
    await clock.advance(61_000);
    // Reclaims the expired lease, and gives back what it took.
    await limiter.acquire({ ...KEY, consume: { slots: 1 } });
    expect(await used()).toBe(0);
    loseNext(async () => {});
    await lease.commit({ tpd: 1_840 });
    expect(await used()).toBeGreaterThanOrEqual(1_840);
  });
});
