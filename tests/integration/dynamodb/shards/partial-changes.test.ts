import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../../src/core/limit.js';
import type { Lease } from '../../../../src/limiter/lease/lease.js';
import { fault } from '../../../../src/testing/dynamodb/index.js';
import { splitInto, spreading, sumOf } from '../../../support/dynamodb/shard/shards.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../../support/dynamodb/world.js';

const BUCKET = { entityId: 'user-1', resource: 'gpt-4' };
const LIMITS = [Limit.perDay('rpd', 100), Limit.perDay('tpd', 100)];
const TAKEN = { rpd: 60, tpd: 60 };

/** A first operation that one of two shards refuses, what the caller does next, and what the lease has taken then. */
const COURSES: readonly (readonly [
  string,
  (lease: Lease) => Promise<void>,
  (lease: Lease) => Promise<void>,
  number,
])[] = [
  ['a commit is repeated', (lease) => lease.commit({ rpd: 64 }), (lease) => lease.commit({ rpd: 64 }), 64],
  ['a commit is repeated with more', (lease) => lease.commit({ rpd: 64 }), (lease) => lease.commit({ rpd: 70 }), 70],
  ['a commit is repeated with less', (lease) => lease.commit({ rpd: 64 }), (lease) => lease.commit({ rpd: 9 }), 9],
  ['a rollback is repeated', (lease) => lease.rollback(), (lease) => lease.rollback(), 0],
  ['a commit becomes a rollback', (lease) => lease.commit({ rpd: 64 }), (lease) => lease.rollback(), 0],
  ['a rollback becomes a commit', (lease) => lease.rollback(), (lease) => lease.commit({ rpd: 64 }), 64],
  ['a settle is repeated with less', (lease) => lease.settle({ rpd: 64 }), (lease) => lease.settle({ rpd: 20 }), 20],
  ['a settle becomes a commit', (lease) => lease.settle({ rpd: 20 }), (lease) => lease.commit(), 60],
  ['a release becomes a settle', (lease) => lease.release(), (lease) => lease.settle({ rpd: 64 }), 64],
];

describe.skipIf(ENGINE.missing)(`changes of a lease that only one of two shards took${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => void (world = await startWorld()));
  afterAll(async () => world?.[Symbol.asyncDispose]());

  /** A lease that took 60 of 100 from two shards. */
  const spreadLease = async (more: { onExpiry?: 'keep' | 'refund'; leaseTtlMs?: number }) => {
    const space = await world.space();
    await (await space.open()).config.setResource('gpt-4', { limits: LIMITS });
    await (await space.open()).acquire({ ...BUCKET, consume: { rpd: 0 } });
    await splitInto(2, world, space, BUCKET);
    const { leaseTtlMs, ...options } = more;
    const limiter = await space.open(options, spreading());
    const lease = await limiter.acquire({
      ...BUCKET,
      consume: TAKEN,
      ...(leaseTtlMs === undefined ? {} : { leaseTtlMs }),
    });
    const shards = async () => space.shards('user-1', 'gpt-4');
    const consumed = async (name: string) => sumOf(await shards(), name, space.clock.now()).consumed / 1_000;
    expect((await shards()).map(({ limits }) => Number(limits[0]?.consumedMilli) > 0)).toEqual([true, true]);
    /** Refuses the writes to the shard. */
    const refuse = (shard: number) =>
      world.proxy.inject(fault.accessDenied(), {
        operations: ['UpdateItem'],
        when: ({ body }) => JSON.stringify(body['Key']).includes(`#${shard}"`),
      });
    return { lease, consumed, shards, refuse };
  };

  describe.each([
    ['without a holder', {}],
    ['whose holder keeps its rates', { leaseTtlMs: 60_000 }],
    ['whose expiry gives its rates back', { leaseTtlMs: 60_000, onExpiry: 'refund' as const }],
  ])('a lease %s', (_, options) => {
    test.each(COURSES)('is exact after %s', async (_course, first, next, expected) => {
      const { lease, consumed, refuse } = await spreadLease(options);
      const refused = refuse(1);
      const isRefused = await first(lease).then(
        () => false,
        () => true,
      );
      refused.release();
      await next(lease);
      expect({ isRefused, rpd: await consumed('rpd') }).toEqual({ isRefused: refused.fired > 0, rpd: expected });
      expect(lease.signal.aborted).toBe(false);
      expect(lease.consumed['rpd']).toBe(expected);
      if (lease.state === 'open') await lease.commit();
      expect(await consumed('rpd')).toBe(expected);
    });
  });

  test('a lease whose commit one of two shards took can be extended until it is committed', async () => {
    const { lease, shards, refuse } = await spreadLease({ leaseTtlMs: 60_000 });
    const refused = refuse(1);
    await expect(lease.commit()).rejects.toMatchObject({ code: 'backend.denied' });
    refused.release();
    await lease.extend(90_000);
    expect(lease.state).toBe('open');
    expect((await shards()).map(({ holders }) => holders.has(lease.id))).toEqual([false, true]);
    await lease.commit();
    expect((await shards()).map(({ holders }) => holders.size)).toEqual([0, 0]);
  });
});
