import { expect, test } from 'vitest';
import { ASK, openLimiter } from '../../../tests/support/models/open-limiter.js';
import { Limit } from '../../core/limit.js';
import { RateLimiter } from '../rate-limiter.js';

const USER = { entityId: ASK.entityId, resource: ASK.resource };
const DENIED = { granted: false, reason: 'paused', decidedBy: 'fallback' };
const FOREVER = { forMs: 'forever', reason: 'leaked' } as const;

/** Another process on the same store, which no outage reaches. */
async function operatorOf({ store, clock }: Awaited<ReturnType<typeof openLimiter>>): Promise<RateLimiter> {
  store.end();
  return RateLimiter.open(store.backend, { clock, limits: [Limit.perMinute('rpm', 60)] });
}

test.each(['allow', 'local'] as const)(
  'the policy %s admits no entity that this process has paused, on any resource',
  async (onUnavailable) => {
    const { limiter, store } = await openLimiter({ onUnavailable });
    await limiter.pause({ entityId: ASK.entityId, ...FOREVER });
    store.start();
    for (const resource of [ASK.resource, 'never-asked']) {
      expect(await limiter.tryAcquire({ ...ASK, resource })).toMatchObject({ ...DENIED, retryAfterMs: null });
      await expect(limiter.acquire({ ...ASK, resource })).rejects.toMatchObject({ code: 'entity.paused' });
    }
    expect((await limiter.tryAcquire({ ...ASK, entityId: 'user-2' })).granted).toBe(true);
  },
);

test.each(['allow', 'local'] as const)(
  'the policy %s admits no entity whose pause this process knows from the config, on any resource',
  async (onUnavailable) => {
    const opened = await openLimiter({ onUnavailable });
    const { limiter, store, clock } = opened;
    await (await operatorOf(opened)).pause({ entityId: ASK.entityId, ...FOREVER });
    expect(await limiter.tryAcquire(ASK)).toMatchObject({ reason: 'paused', decidedBy: 'store' });
    await clock.advance(1_000);
    store.start();
    for (const resource of [ASK.resource, 'never-asked']) {
      expect(await limiter.tryAcquire({ ...ASK, resource })).toMatchObject(DENIED);
    }
  },
);

test('the policy allow admits no bucket whose pause this process knows only from a denial of the store', async () => {
  const opened = await openLimiter({ onUnavailable: 'allow' });
  const { limiter, store, clock } = opened;
  await limiter.acquire(ASK);
  await (await operatorOf(opened)).pause({ ...USER, forMs: 3_600_000, reason: 'vendor' });
  expect(await limiter.tryAcquire(ASK)).toMatchObject({ reason: 'paused', decidedBy: 'store' });
  store.start();
  expect(await limiter.tryAcquire(ASK)).toMatchObject({ ...DENIED, retryAfterMs: 3_600_000 });
  expect((await limiter.tryAcquire({ ...ASK, resource: 'other' })).granted).toBe(true);
  await clock.advance(3_600_000);
  expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'open' });
});

test('the policy allow admits no child of a paused parent, also on a resource that it never asked for', async () => {
  const { limiter, store, clock } = await openLimiter({ onUnavailable: 'allow' });
  await limiter.entities.create({ id: 'team' });
  await limiter.entities.create({ id: ASK.entityId, parentId: 'team', cascade: true });
  await limiter.pause({ entityId: 'team', ...FOREVER });
  expect(await limiter.tryAcquire(ASK)).toMatchObject({ reason: 'paused' });
  await clock.advance(1_000);
  store.start();
  for (const resource of [ASK.resource, 'never-asked']) {
    expect(await limiter.tryAcquire({ ...ASK, resource })).toMatchObject({ ...DENIED, paused: { entityId: 'team' } });
  }
});

test('the policy allow admits an entity again once this process has resumed it, or has seen it resumed', async () => {
  const opened = await openLimiter({ onUnavailable: 'allow' });
  const { limiter, store, clock } = opened;
  await limiter.pause({ entityId: ASK.entityId, ...FOREVER });
  await limiter.tryAcquire(ASK);
  await limiter.resume({ entityId: ASK.entityId });
  store.start();
  expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'open' });
  const operator = await operatorOf(opened);
  await operator.pause({ ...USER, ...FOREVER });
  await clock.advance(60_000);
  await limiter.tryAcquire(ASK);
  await operator.resume(USER);
  await clock.advance(1_000);
  await limiter.acquire(ASK);
  store.start();
  expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'open' });
});

test('a pause whose config expired during the outage still denies', async () => {
  const { limiter, store, clock } = await openLimiter({ onUnavailable: 'allow' });
  await limiter.pause({ ...USER, ...FOREVER });
  await limiter.tryAcquire(ASK);
  store.start();
  await clock.advance(600_000);
  expect(await limiter.tryAcquire(ASK)).toMatchObject(DENIED);
});

test('the policy block rejects while the store does not answer, also for a paused entity that is not cached', async () => {
  const { limiter, store } = await openLimiter();
  await limiter.pause({ ...USER, ...FOREVER });
  store.start();
  await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject({ code: 'backend.unavailable' });
});
