import { describe, expect, test } from 'vitest';
import { memory } from '../../backends/embedded/memory.js';
import { Limit } from '../../core/limit.js';
import { fakeClock } from '../../testing/fake-clock.js';
import { outage } from '../../testing/outage.js';
import type { LimiterOptions } from '../options.js';
import { RateLimiter } from '../rate-limiter.js';
import type { LimiterEvent } from './limiter-event.js';

const LIMITS = [Limit.perMinute('rpm', 60), Limit.concurrent('slots', 1)];
const USER = { entityId: 'user-1', resource: 'gpt-4' };
const ASK = { ...USER, consume: { rpm: 10 } };

/** A limiter in memory, with its events and its reported errors. */
async function listening(options: LimiterOptions = {}, backend = memory()) {
  const clock = fakeClock();
  const events: LimiterEvent[] = [];
  const errors: unknown[] = [];
  const limiter = await RateLimiter.open(backend, {
    clock,
    limits: LIMITS,
    onEvent: (event) => events.push(event),
    onError: (error) => errors.push(error),
    ...options,
  });
  const of = (type: LimiterEvent['type']) => events.filter((event) => event.type === type);
  return { limiter, clock, events, errors, of, backend };
}

describe('the events of decisions', () => {
  test('a grant is one event, by acquire and by tryAcquire', async () => {
    const { limiter, events } = await listening();
    await limiter.acquire(ASK);
    await limiter.tryAcquire(ASK);
    const event = {
      type: 'decision',
      namespace: 'default',
      ...ASK,
      granted: true,
      reason: null,
      retryAfterMs: null,
      decidedBy: 'store',
      limits: [{ entityId: 'user-1', limit: 'rpm', requested: 10, exceeded: false }],
      tokens: { rpm: 10 },
      violations: [],
      paused: null,
      durationMs: 0,
    };
    expect(events).toEqual([event, event]);
  });

  test('a denial names the limits that refused, with their level and their wait', async () => {
    const { limiter, of } = await listening();
    await limiter.config.setEntityDefault('team', { limits: [Limit.perMinute('rpm', 6)] });
    await limiter.entities.create({ id: 'team' });
    await limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
    await limiter.acquire({ ...USER, consume: { rpm: 6 } });
    await limiter.tryAcquire({ ...USER, consume: { rpm: 2 } });
    expect(of('decision')[1]).toMatchObject({
      granted: false,
      reason: 'exhausted',
      retryAfterMs: 20_000,
      violations: [{ entityId: 'team', limit: 'rpm', requested: 2, available: 0, retryAfterMs: 20_000 }],
    });
  });

  test('a decision names every limit that was asked, at every level, and what the grant took', async () => {
    const { limiter, of } = await listening({
      limits: [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 90, { cost: 5 })],
    });
    await limiter.config.setEntityDefault('team', { limits: [Limit.perMinute('rpm', 6)] });
    await limiter.entities.create({ id: 'team' });
    await limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
    await limiter.acquire({ ...USER, consume: { rpm: 6 } });
    await limiter.tryAcquire({ ...USER, consume: { rpm: 2 } });
    const asked = (requested: number, exceeded: boolean) => [
      { entityId: 'user-1', limit: 'rpm', requested, exceeded: false },
      { entityId: 'user-1', limit: 'tpm', requested: 5, exceeded: false },
      { entityId: 'team', limit: 'rpm', requested, exceeded },
    ];
    expect(of('decision')).toMatchObject([
      { granted: true, limits: asked(6, false), tokens: { rpm: 6, tpm: 5 } },
      { granted: false, limits: asked(2, true), tokens: {} },
    ]);
  });

  test('the duration of a decision includes the wait for tokens', async () => {
    const { limiter, clock, of } = await listening();
    await limiter.acquire({ ...USER, consume: { rpm: 60 } });
    const waiting = limiter.acquire({ ...USER, consume: { rpm: 5 }, wait: { timeoutMs: 10_000 } });
    await clock.advance(5_000);
    await waiting;
    expect(of('decision')[1]).toMatchObject({ granted: true, durationMs: 5_000, waitedMs: 5_000 });
  });

  test('a request with `wait` that is granted at once has waited for 0 ms, and one without `wait` has no such time', async () => {
    const { limiter, of } = await listening();
    await limiter.acquire({ ...ASK, wait: { timeoutMs: 1_000 } });
    await limiter.acquire(ASK);
    expect(of('decision')[0]).toMatchObject({ waitedMs: 0 });
    expect(of('decision')[1]).not.toHaveProperty('waitedMs');
  });

  test('a wait that ends with a denial is counted from its first refusal', async () => {
    const { limiter, clock, of } = await listening();
    await limiter.acquire({ ...USER, consume: { slots: 1 } });
    const waiting = limiter.tryAcquire({ ...USER, consume: { slots: 1 }, wait: { timeoutMs: 3_000 } });
    await clock.advance(3_000);
    await waiting;
    expect(of('decision')[1]).toMatchObject({ granted: false, waitedMs: 3_000 });
  });

  test('`onDecision` and `onEvent` both get every decision', async () => {
    const decisions: unknown[] = [];
    const { limiter, of } = await listening({ onDecision: (event) => decisions.push(event) });
    await limiter.acquire(ASK);
    expect([decisions.length, of('decision').length]).toEqual([1, 1]);
    expect(decisions[0]).not.toHaveProperty('type');
  });
});

describe('the events of leases', () => {
  test('a commit is one event with the settled amounts, also if it needs no write', async () => {
    const { limiter, of } = await listening();
    const plain = await limiter.acquire(ASK);
    await plain.commit();
    await plain.commit();
    const settled = await limiter.acquire({ ...USER, consume: { rpm: 1, slots: 1 } });
    await settled.commit({ rpm: 7 });
    expect(of('lease-end')).toEqual([
      {
        type: 'lease-end',
        namespace: 'default',
        ...USER,
        leaseId: plain.id,
        how: 'committed',
        amounts: { rpm: 10 },
        tokens: { rpm: 10 },
      },
      {
        type: 'lease-end',
        namespace: 'default',
        ...USER,
        leaseId: settled.id,
        how: 'committed',
        amounts: { rpm: 7 },
        tokens: { rpm: 7 },
      },
    ]);
  });

  test('a rollback is one event with what it gave back', async () => {
    const { limiter, of } = await listening();
    await (await limiter.acquire(ASK)).rollback();
    await limiter.run(ASK, () => Promise.reject(new Error('failed'))).catch(() => {});
    expect(of('lease-end')).toMatchObject([
      { how: 'rolled-back', amounts: { rpm: 10 } },
      { how: 'rolled-back', amounts: { rpm: 10 } },
    ]);
  });

  test('a lease whose holder was reclaimed is reported as expired once, when a write finds that it is missing', async () => {
    const { limiter, clock, of } = await listening();
    const lost = await limiter.acquire({ ...USER, consume: { rpm: 1, slots: 1 }, leaseTtlMs: 5_000 });
    await clock.advance(5_000);
    await limiter.acquire({ ...USER, consume: { slots: 1 } });
    await lost.extend().catch(() => {});
    await lost.release();
    expect(of('lease-end')).toMatchObject([{ leaseId: lost.id, how: 'expired', amounts: { rpm: 1, slots: 1 } }]);
  });

  test('a lease whose signal is watched is reported as expired when its time has passed', async () => {
    const { limiter, clock, of } = await listening();
    const lease = await limiter.acquire({ ...USER, consume: { slots: 1 }, leaseTtlMs: 5_000 });
    expect(lease.signal.aborted).toBe(false);
    await clock.advance(5_000);
    expect(of('lease-end')).toMatchObject([{ leaseId: lease.id, how: 'expired' }]);
  });
});

describe('the events of slots', () => {
  const SLOT = { ...USER, consume: { rpm: 1, slots: 1 } };
  const EVENT = { type: 'slots', namespace: 'default', ...USER };

  test('events report slots when they are taken, when they are kept for longer and when they are given back', async () => {
    const { limiter, clock, of } = await listening();
    const lease = await limiter.acquire({ ...SLOT, leaseTtlMs: 5_000 });
    await limiter.acquire(ASK);
    const first = new Date(clock.now() + 5_000);
    await clock.advance(2_000);
    await lease.extend();
    await lease.release();
    await lease.commit();
    const event = { ...EVENT, leaseId: lease.id };
    expect(of('slots')).toEqual([
      { ...event, slots: { slots: 1 }, expiresAt: first },
      { ...event, slots: { slots: 1 }, expiresAt: new Date(first.getTime() + 2_000) },
      { ...event, slots: {}, expiresAt: null },
    ]);
  });

  test.each(['commit', 'rollback'] as const)('the slots of a lease return with its %s', async (end) => {
    const { limiter, of } = await listening();
    const lease = await limiter.acquire(SLOT);
    await lease[end]();
    expect(of('slots')).toMatchObject([{ slots: { slots: 1 } }, { slots: {}, expiresAt: null }]);
    expect(of('lease-end')).toMatchObject([{ tokens: { rpm: 1 } }]);
  });

  test('a write that finds the holder gone tells that the slots are lost', async () => {
    const { limiter, clock, of } = await listening();
    const lost = await limiter.acquire({ ...SLOT, leaseTtlMs: 5_000 });
    await clock.advance(5_000);
    await (await limiter.acquire(SLOT)).commit();
    await lost.commit();
    expect(of('slots').filter((event) => 'leaseId' in event && event.leaseId === lost.id)).toMatchObject([
      { slots: { slots: 1 } },
      { slots: {} },
    ]);
  });

  test('the slots of a portable lease return in the process that ends it, and ending a lease by its id emits the same events', async () => {
    const leaseSecrets = ['a-secret-of-tests-that-is-long-enough'] as const;
    const { limiter, of } = await listening({ leaseSecrets });
    const lease = await limiter.acquire({ ...SLOT, portable: true });
    await (await limiter.leases.resume(await lease.token())).commit();
    const other = await limiter.acquire(SLOT);
    await limiter.leases.release(other.id);
    expect(of('slots')).toMatchObject([
      { leaseId: lease.id, slots: { slots: 1 } },
      { leaseId: lease.id, slots: {} },
      { leaseId: other.id, slots: { slots: 1 } },
      { leaseId: other.id, slots: {} },
    ]);
  });
});

test('a release by id is one end of the lease at its own level, with its amounts, also without slots', async () => {
  const { limiter, of } = await listening();
  await limiter.entities.create({ id: 'a-team' });
  await limiter.entities.create({ id: USER.entityId, parentId: 'a-team', cascade: true });
  const [slots, rates] = [
    await limiter.acquire({ ...USER, consume: { rpm: 1, slots: 1 }, portable: true }),
    await limiter.acquire({ ...ASK, portable: true }),
  ];
  for (const { id } of [slots, rates]) await limiter.leases.release(id);
  expect(of('lease-end')).toEqual([
    {
      type: 'lease-end',
      namespace: 'default',
      ...USER,
      leaseId: slots.id,
      how: 'expired',
      amounts: slots.consumed,
      tokens: { rpm: 1 },
    },
    {
      type: 'lease-end',
      namespace: 'default',
      ...USER,
      leaseId: rates.id,
      how: 'expired',
      amounts: ASK.consume,
      tokens: ASK.consume,
    },
  ]);
});

test('an integration tells the refusal of a provider', async () => {
  const { limiter, events } = await listening();
  limiter.noteThrottle({ ...USER, dimension: 'tokens', retryAfterMs: 2_000 });
  expect(events).toEqual([
    { type: 'provider-throttle', namespace: 'default', ...USER, dimension: 'tokens', retryAfterMs: 2_000 },
  ]);
});

describe('the events of the store', () => {
  test('an outage has one event when the breaker opens, and one when the store answers again', async () => {
    const failing = outage(memory());
    const { limiter, clock, events } = await listening({ onUnavailable: 'allow' }, failing.backend);
    await limiter.acquire(ASK);
    events.length = 0;
    failing.start({ kind: 'connection', only: ['consume'] });
    for (let call = 0; call < 8; call++) await limiter.acquire(ASK);
    const types = (): string[] => events.map(({ type }) => type).filter((type) => type !== 'decision');
    expect(types()).toEqual(['outage-begin']);
    expect(events.find(({ type }) => type === 'outage-begin')).toMatchObject({ error: { kind: 'connection' } });
    failing.end();
    await clock.advance(1_000);
    await limiter.acquire(ASK);
    await limiter.acquire(ASK);
    expect(types()).toEqual(['outage-begin', 'outage-end']);
    expect(events.filter(({ type }) => type === 'decision')).toHaveLength(10);
  });

  test('the process that makes a change of config emits it, and another process when it reads the limits again', async () => {
    const first = await listening();
    const second = await listening({ clock: first.clock }, first.backend);
    await second.limiter.acquire(ASK);
    await first.limiter.config.setResource('gpt-4', { limits: LIMITS });
    await first.limiter.config.setSystem({ limits: LIMITS });
    await first.limiter.config.delete({ entityId: 'user-9' });
    const own = { type: 'config-change', namespace: 'default', by: 'this-process' };
    expect(first.of('config-change')).toEqual([
      { ...own, entityId: null, resource: 'gpt-4' },
      { ...own, entityId: null, resource: null },
      { ...own, entityId: 'user-9', resource: null },
    ]);
    await first.limiter.acquire(ASK);
    expect(first.of('config-change')).toHaveLength(3);
    await first.clock.advance(60_000);
    await second.limiter.acquire(ASK);
    await first.clock.advance(60_000);
    await second.limiter.acquire(ASK);
    expect(second.of('config-change')).toEqual([{ type: 'config-change', namespace: 'default', by: 'read', ...USER }]);
  });

  test('a pause and a resume are one event each, and a denial by the pause names it', async () => {
    const { limiter, events, clock } = await listening();
    const until = new Date(clock.now() + 5_000);
    await limiter.pause({ ...USER, forMs: 5_000, reason: 'abuse' });
    await limiter.tryAcquire(ASK);
    await limiter.resume(USER);
    await limiter.resume(USER);
    await limiter.pause({ entityId: 'user-1', forMs: 'forever', reason: 'revoked' });
    const paused = { ...USER, until, reason: 'abuse' };
    expect(events).toMatchObject([
      { type: 'pause', namespace: 'default', ...paused },
      { type: 'decision', granted: false, reason: 'paused', paused },
      { type: 'resume', namespace: 'default', ...USER },
      { type: 'pause', entityId: 'user-1', resource: null, until: null, reason: 'revoked' },
    ]);
  });

  test('a limits file tells each level that it changes', async () => {
    const { limiter, of } = await listening();
    const manifest = { namespace: 'default', resources: { 'gpt-4': { limits: ['rpm:7/min'] } } };
    await limiter.manifest.apply(manifest);
    await limiter.manifest.apply(manifest);
    expect(of('config-change')).toMatchObject([{ by: 'this-process', entityId: null, resource: 'gpt-4' }]);
  });
});

test('a listener that throws breaks no call, and is reported once', async () => {
  const clock = fakeClock();
  const errors: unknown[] = [];
  const limiter = await RateLimiter.open(memory(), {
    clock,
    limits: LIMITS,
    onEvent: () => {
      throw new Error('the listener failed');
    },
    onError: (error, where) => errors.push([where, String(error)]),
  });
  for (let call = 0; call < 3; call++) await (await limiter.acquire(ASK)).commit();
  await limiter.config.setSystem({ limits: LIMITS });
  expect(errors).toEqual([['onEvent', 'Error: the listener failed']]);
});
