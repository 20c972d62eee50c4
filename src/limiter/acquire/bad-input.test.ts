import { describe, expect, test } from 'vitest';
import { ASK, LIMITS, openLimiter, writes } from '../../../tests/support/models/open-limiter.js';
import { Limit } from '../../core/limit.js';
import { RateLimiter } from '../rate-limiter.js';

type Call = (limiter: RateLimiter) => Promise<unknown>;

/** A request that a caller without type checks could make. */
const asking =
  (change: object, verb: 'tryAcquire' | 'acquire' = 'tryAcquire'): Call =>
  (limiter) =>
    limiter[verb]({ ...ASK, ...change });

const REFUSED: readonly (readonly [string, Call, string])[] = [
  ['a limit name that no level has', asking({ consume: { rpn: 1 } }), 'consume.rpn'],
  ['a name that only the prototype has', asking({ consume: { toString: 1 } }), 'consume.toString'],
  ['a negative amount', asking({ consume: { rpm: -1 } }), 'consume.rpm'],
  ['a fractional amount', asking({ consume: { rpm: 0.5 } }), 'consume.rpm'],
  ['an amount that is not a number', asking({ consume: { rpm: '1' } }), 'consume.rpm'],
  ['NaN', asking({ consume: { rpm: Number.NaN } }), 'consume.rpm'],
  ['an infinite amount', asking({ consume: { rpm: Number.POSITIVE_INFINITY } }), 'consume.rpm'],
  ['an amount above 1e12', asking({ consume: { rpm: 1e12 + 1 } }), 'consume.rpm'],
  ['undefined as an amount', asking({ consume: { rpm: undefined } }), 'consume.rpm'],
  ['a missing amount', asking({ consume: { rpm: null } }), 'consume.rpm'],
  ['an empty consume where no limit has a cost', asking({ consume: {} }), 'consume'],
  ['no consume where no limit has a cost', asking({ consume: undefined }), 'consume'],
  ['a consume that is a list', asking({ consume: [1] }), 'consume'],
  ['a consume that is a number', asking({ consume: 1 }), 'consume'],
  ['an empty entity id', asking({ entityId: '' }), 'entityId'],
  ['an entity id with a space', asking({ entityId: 'a b' }), 'entityId'],
  ['an entity id with #', asking({ entityId: 'a#b' }), 'entityId'],
  ['an entity id that starts with $', asking({ entityId: '$SYSTEM' }), 'entityId'],
  ['an entity id of 257 characters', asking({ entityId: 'x'.repeat(257) }), 'entityId'],
  ['an entity id that is not ASCII', asking({ entityId: 'Zoë' }), 'entityId'],
  ['an entity id that is not text', asking({ entityId: 7 }), 'entityId'],
  ['a missing entity id', asking({ entityId: undefined }), 'entityId'],
  ['an empty resource', asking({ resource: '' }), 'resource'],
  ['a resource with ~', asking({ resource: 'gpt-4~x' }), 'resource'],
  ['a resource that starts with _', asking({ resource: '_default_' }), 'resource'],
  ['a resource that starts with $', asking({ resource: '$x' }), 'resource'],
  ['a resource with #', asking({ resource: 'a#b' }), 'resource'],
  ['a resource of 129 characters', asking({ resource: 'x'.repeat(129) }), 'resource'],
  ['a lease that lives too short', asking({ leaseTtlMs: 4_999 }), 'leaseTtlMs'],
  ['a lease life that is not a number', asking({ leaseTtlMs: '60s' }), 'leaseTtlMs'],
  ['a negative wait', asking({ wait: { timeoutMs: -1 } }), 'wait.timeoutMs'],
  ['a wait without a time', asking({ wait: {} }), 'wait.timeoutMs'],
  ['a wait of null', asking({ wait: null }), 'wait'],
  ['a wait with a misspelt field', asking({ wait: { timeoutMs: 1, timeout: 1 } }), 'wait.timeout'],
  ['a request with an unknown field', asking({ waitMs: 100 }), 'request.waitMs'],
  ['a request with a misspelt field', asking({ limit: [] }), 'request.limit'],
  ['per-call limits that are none', asking({ limits: [] }), 'limits'],
  ['per-call limits that are text', asking({ limits: ['rpm:5/min'] }), 'limits'],
  ['per-call limits of one name', asking({ limits: [Limit.perDay('rpm', 1), Limit.perHour('rpm', 1)] }), 'limits'],
  ['a signal that is none', asking({ signal: {} }), 'signal'],
  ['an unknown policy', asking({ onUnavailable: 'maybe' }), 'onUnavailable'],
  ['a request that is none', (limiter) => limiter.tryAcquire(undefined as never), 'request'],
  ['a request that is null', (limiter) => limiter.acquire(null as never), 'request'],
  ['an unknown onThrow', (limiter) => limiter.run({ ...ASK, onThrow: 'retry' as never }, () => 1), 'onThrow'],
  ['a run without a function', (limiter) => limiter.run(ASK, undefined as never), 'work'],
  ['a status of an empty entity id', (limiter) => limiter.status({ entityId: '', resource: 'gpt-4' }), 'entityId'],
  ['a status without a request', (limiter) => limiter.status(undefined as never), 'request'],
  [
    'a time until a negative ask fits',
    (limiter) => limiter.timeUntilAvailable({ ...ASK, consume: { tpm: -1 } }),
    'consume.tpm',
  ],
  ['system limits that are none', (limiter) => limiter.config.setSystem({ limits: [] }), 'limits'],
  ['system limits of one name', (limiter) => limiter.config.setSystem({ limits: [...LIMITS, ...LIMITS] }), 'limits'],
  ['an unknown stored policy', (limiter) => limiter.config.setSystem({ onUnavailable: 'x' as never }), 'onUnavailable'],
  [
    'a policy for one resource',
    (limiter) => limiter.config.setResource('gpt-4', { onUnavailable: 'allow' } as never),
    'onUnavailable',
  ],
  ['a config of nothing', (limiter) => limiter.config.setResource('gpt-4', undefined as never), 'config'],
  ['a config for an illegal resource', (limiter) => limiter.config.setResource('a~b', { limits: LIMITS }), 'resource'],
  [
    'a config for an illegal entity',
    (limiter) => limiter.config.setEntityDefault('$x', { limits: LIMITS }),
    'entityId',
  ],
  ['a config level that is none', (limiter) => limiter.config.delete({} as never), 'level'],
  [
    'an undefined entity in a config level',
    (limiter) => limiter.config.delete({ entityId: undefined } as never),
    'entityId',
  ],
  ['an entity with an illegal id', (limiter) => limiter.entities.create({ id: 'a b' }), 'id'],
  [
    'an entity whose metadata is text',
    (limiter) => limiter.entities.create({ id: 'a', metadata: 'x' as never }),
    'metadata',
  ],
  [
    'an entity whose cascade is text',
    (limiter) => limiter.entities.create({ id: 'a', cascade: 'yes' as never }),
    'cascade',
  ],
  ['an entity that cascades to no parent', (limiter) => limiter.entities.create({ id: 'a', cascade: true }), 'cascade'],
  [
    'an entity with a misspelt field',
    (limiter) => limiter.entities.create({ id: 'a', nmae: 'x' } as never),
    'entity.nmae',
  ],
  ['an update with a misspelt field', (limiter) => limiter.entities.update('a', { nmae: 'x' } as never), 'update.nmae'],
  ['a list of nothing', async (limiter) => limiter.leases.list(null as never), 'query'],
  ['a list of a resource without an entity', async (limiter) => limiter.leases.list({ resource: 'r' }), 'entityId'],
  ['a release of no lease', async (limiter) => limiter.leases.release('x'), 'id'],
  [
    'a release with an unknown field',
    async (limiter) => limiter.leases.release('0Abcdefgh12', { x: 1 } as never),
    'query.x',
  ],
  ['a token without a secret', async (limiter) => limiter.leases.resume('hgl1.a.b'), 'leaseSecrets'],
  ['a page of null', async (limiter) => limiter.entities.list(null as never), 'query'],
  ['an illegal namespace', (limiter) => limiter.namespaces.register('-x'), 'name'],
  ['an illegal namespace to work in', (limiter) => limiter.in('a/b'), 'namespace'],
  ['a page of nothing', async (limiter) => limiter.namespaces.list({ limit: 0 }), 'limit'],
  ['usage without a window', async (limiter) => limiter.usage.query({ ...ASK } as never), 'window'],
  ['a summary without a window', async (limiter) => limiter.usage.summary({ ...ASK } as never), 'window'],
  [
    'usage from a time that is text',
    async (limiter) => limiter.usage.query({ ...ASK, window: 'hourly', from: '2026' as never }),
    'from',
  ],
];

describe('bad input of a call', () => {
  test.each([...REFUSED])('bad input is refused with its field: %s', async (_, call, field) => {
    const { limiter, store } = await openLimiter();
    const before = store.calls.length;
    await expect(call(limiter)).rejects.toMatchObject({ name: 'ValidationError', code: 'input.invalid', field });
    expect(writes(store.calls.slice(before))).toEqual([]);
  });

  test.each(REFUSED.slice(0, 30))('bad input is refused also when the names are cached: %s', async (_, call, field) => {
    const { limiter, store } = await openLimiter();
    await limiter.acquire(ASK);
    const before = store.calls.length;
    await expect(call(limiter)).rejects.toMatchObject({ code: 'input.invalid', field });
    expect(writes(store.calls.slice(before))).toEqual([]);
  });
});

describe('input that only the store can check', () => {
  test('the store refuses a parent that does not exist', async () => {
    const { limiter } = await openLimiter();
    await expect(limiter.entities.create({ id: 'a', parentId: 'missing' })).rejects.toMatchObject({
      code: 'input.invalid',
      field: 'parentId',
    });
    expect(await limiter.entities.get('a')).toBeNull();
  });

  test('the store refuses an entity that is its own parent', async () => {
    const { limiter } = await openLimiter();
    await expect(limiter.entities.create({ id: 'a', parentId: 'a' })).rejects.toMatchObject({ field: 'parentId' });
  });

  test('the store refuses a chain of more than 8 levels', async () => {
    const { limiter } = await openLimiter();
    await limiter.entities.create({ id: 'e1' });
    for (let level = 2; level <= 8; level++) {
      await limiter.entities.create({ id: `e${level}`, parentId: `e${level - 1}`, cascade: true });
    }
    await expect(limiter.entities.create({ id: 'e9', parentId: 'e8' })).rejects.toMatchObject({ field: 'parentId' });
    expect(await limiter.entities.get('e9')).toBeNull();
  });

  test('the store refuses to create an entity that exists', async () => {
    const { limiter } = await openLimiter();
    await limiter.entities.create({ id: 'a', name: 'first' });
    await expect(limiter.entities.create({ id: 'a', name: 'second' })).rejects.toMatchObject({ code: 'entity.exists' });
    expect(await limiter.entities.get('a')).toMatchObject({ name: 'first' });
  });

  test('an acquire of an entity without limits at any level is refused', async () => {
    const { limiter, store } = await openLimiter({ limits: [] });
    await expect(limiter.acquire(ASK)).rejects.toMatchObject({ code: 'limits.missing', entityId: 'user-1' });
    await expect(limiter.status(ASK)).rejects.toMatchObject({ code: 'limits.missing' });
    expect(writes(store.calls)).toEqual([]);
  });

  test('a namespace that is not registered is refused', async () => {
    const { limiter } = await openLimiter();
    await expect(limiter.in('acne')).rejects.toMatchObject({ code: 'namespace.missing', namespace: 'acne' });
    expect((await limiter.namespaces.list()).items.map(({ name }) => name)).toEqual(['default']);
  });
});

test('no method throws synchronously', async () => {
  const { limiter } = await openLimiter();
  const unopened = new RateLimiter('memory:', { limits: LIMITS });
  const throwing = {
    ...ASK,
    get wait(): never {
      throw new TypeError('a getter that throws');
    },
  };
  const calls = [
    ...REFUSED.map(([, call]) => call(limiter)),
    ...[limiter, unopened].map((each) => each.tryAcquire(throwing)),
  ];
  const outcomes = await Promise.allSettled(calls);
  expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
});
