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

test.each([{}, { resource: ASK.resource }])(
  'the policy allow admits a child again once this process has resumed its parent with %o',
  async (target) => {
    const { limiter, store } = await openLimiter({ onUnavailable: 'allow' });
    await limiter.entities.create({ id: 'team' });
    await limiter.entities.create({ id: ASK.entityId, parentId: 'team', cascade: true });
    await limiter.pause({ entityId: 'team', ...target, ...FOREVER });
    expect(await limiter.tryAcquire(ASK)).toMatchObject({ reason: 'paused' });
    await limiter.resume({ entityId: 'team', ...target });
    store.start();
    expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'open' });
  },
);

test.each<[string, (limiter: RateLimiter) => Promise<unknown>]>([
  ['has changed a config', (limiter) => limiter.config.setResource('other', { limits: [Limit.perMinute('rpm', 1)] })],
  ['has resumed another entity', (limiter) => limiter.resume({ entityId: 'user-2' })],
  ['has resumed only its bucket', (limiter) => limiter.resume(USER)],
])('the policy allow admits no entity whose pause this process has read, also after it %s', async (_, change) => {
  const opened = await openLimiter({ onUnavailable: 'allow' });
  const { limiter, store } = opened;
  await (await operatorOf(opened)).pause({ entityId: ASK.entityId, ...FOREVER });
  await limiter.status(USER);
  await change(limiter);
  store.start();
  expect(await limiter.tryAcquire(ASK)).toMatchObject(DENIED);
  store.end();
  await limiter.resume({ entityId: ASK.entityId });
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

/** Two users of a team whose bucket another process has paused, which this process knows from a denial of the first. */
async function openTeam(more: object = {}) {
  const opened = await openLimiter({ onUnavailable: 'allow', ...more });
  const { limiter } = opened;
  const operator = await operatorOf(opened);
  await operator.entities.create({ id: 'team' });
  for (const id of ['user-1', 'user-2']) await operator.entities.create({ id, parentId: 'team', cascade: true });
  return {
    ...opened,
    operator,
    askAs: (entityId: string) => limiter.tryAcquire({ ...ASK, entityId, consume: { rpm: 1 } }),
  };
}

test('the policy allow admits no entity below a paused bucket that this process knows by another child', async () => {
  const { store, clock, operator, askAs } = await openTeam();
  for (const id of ['user-1', 'user-2']) await askAs(id);
  await operator.pause({ ...USER, entityId: 'team', ...FOREVER });
  expect(await askAs('user-1')).toMatchObject({ reason: 'paused', decidedBy: 'store' });
  store.start();
  for (const id of ['user-1', 'user-2', 'team']) expect(await askAs(id)).toMatchObject(DENIED);
  store.end();
  await operator.resume({ ...USER, entityId: 'team' });
  await clock.advance(60_000);
  expect(await askAs('user-2')).toMatchObject({ granted: true, decidedBy: 'store' });
  store.start();
  for (const id of ['user-2', 'team']) expect(await askAs(id)).toMatchObject({ granted: true, decidedBy: 'open' });
});

test('a grant that took nothing from a paused bucket of a parent does not end what is known of its pause', async () => {
  const { limiter, store, operator, askAs } = await openTeam({ limits: [] });
  const rpm = Limit.perMinute('rpm', 60);
  await operator.config.setEntityDefault('team', { limits: [rpm] });
  await operator.config.setEntityDefault('user-1', { limits: [rpm, Limit.perDay('own', 10)] });
  limiter.config.cache.clear();
  await askAs('user-1');
  await operator.pause({ ...USER, entityId: 'team', ...FOREVER });
  expect(await askAs('user-1')).toMatchObject({ reason: 'paused', decidedBy: 'store' });
  expect(await limiter.tryAcquire({ ...ASK, entityId: 'user-1', consume: { own: 1 } })).toMatchObject({
    granted: true,
  });
  store.start();
  expect(await askAs('user-1')).toMatchObject(DENIED);
});

test('the policy allow admits no entity that a limits file of this process has paused, until the file ends it', async () => {
  const { limiter, store } = await openLimiter({ onUnavailable: 'allow' });
  await limiter.tryAcquire(ASK);
  const apply = (paused: { readonly reason: string } | false) =>
    limiter.manifest.apply({ namespace: 'default', entities: { [ASK.entityId]: { paused } } });
  await apply({ reason: 'leaked' });
  store.start();
  expect(await limiter.tryAcquire(ASK)).toMatchObject(DENIED);
  store.end();
  await apply(false);
  store.start();
  expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'open' });
});
