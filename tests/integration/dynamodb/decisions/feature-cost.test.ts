import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../../src/core/limit.js';
import type { AcquireRequest } from '../../../../src/limiter/acquire/request.js';
import type { Lease } from '../../../../src/limiter/lease/lease.js';
import type { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../../support/dynamodb/world.js';

const USER = { entityId: 'user-1', resource: 'gpt-4' };
const ASK: AcquireRequest = { ...USER, consume: { rpm: 1, tpm: 500 } };
const RESERVED = Limit.perMinute('rpm', 600, { reserve: { batch: 0.3 } });
const TPM = Limit.perMinute('tpm', 60_000);
const SHADOW = Limit.perMinute('tpm', 60_000, { shadow: true });

/** What an ask uses, on limits that the row names. */
const ASKS: readonly (readonly [name: string, limits: readonly Limit[], ask: AcquireRequest])[] = [
  ['with a class', [RESERVED, TPM], { ...ASK, priority: 'batch' }],
  ['without a class, of a limit with a reserve', [RESERVED, TPM], ASK],
  ['of a shadow with room', [RESERVED, SHADOW], ASK],
  ['of a shadow that is short', [RESERVED, SHADOW], { ...ASK, consume: { rpm: 1, tpm: 60_001 } }],
  ['of a portable lease', [RESERVED, TPM], { ...ASK, portable: true }],
];

const OPERATIONS: readonly (readonly [name: string, operation: (lease: Lease) => Promise<void>])[] = [
  ['settle', (lease) => lease.settle({ tpm: 900 })],
  ['adjust', (lease) => lease.adjust({ tpm: 100 }, { operationId: 'once' })],
  ['commit', (lease) => lease.commit()],
  ['rollback', (lease) => lease.rollback()],
];

describe.skipIf(ENGINE.missing)(`the cost of features${ENGINE.note}`, () => {
  let world: DynamoWorld;
  beforeAll(async () => {
    world = await startWorld({ record: true, askForCapacity: true });
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  const costOf = async (work: () => Promise<unknown>) => {
    const { requests } = world.proxy;
    requests.clear();
    await work();
    return { requests: requests.count(), ...requests.consumed() };
  };
  const writes = (count: number) => ({ requests: count, readUnits: 0, writeUnits: count });
  /** The user cascades to a team. The bucket exists, and has had a holder. */
  const warm = async (limits: readonly Limit[], isBypassed = false): Promise<RateLimiter> => {
    const space = await world.space();
    const limiter = await space.open({ limits, leaseSecrets: ['a secret of this test'] });
    await limiter.entities.create({ id: 'team' });
    await limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true, bypass: isBypassed });
    await (await limiter.acquire({ ...ASK, portable: true })).commit();
    return limiter;
  };

  test.each(ASKS)('an acquire %s is one write of one unit per level, and no read', async (_, limits, ask) => {
    const limiter = await warm(limits);
    expect(await costOf(async () => limiter.acquire(ask))).toEqual(writes(2));
  });

  test('an acquire of an entity with bypass is one write of one unit per level, and no read', async () => {
    const limiter = await warm([RESERVED, TPM], true);
    expect(await costOf(async () => limiter.acquire(ASK))).toEqual(writes(2));
  });

  test('a pause of a bucket in one shard is one transaction and one write, with the reads before and after them', async () => {
    const limiter = await warm([RESERVED, TPM]);
    const paused = await costOf(async () => limiter.pause({ ...USER, forMs: 1_000, reason: 'vendor' }));
    expect(paused).toEqual({ requests: 5, readUnits: 3, writeUnits: 7 });
    // The config, which the pause has outdated, is read again.
    const resumed = await costOf(async () => limiter.resume(USER));
    expect(resumed).toEqual({ requests: 6, readUnits: 8, writeUnits: 6 });
  });

  test('to resume a token is one read of all levels, and a release by id is three reads and one transaction for a bucket', async () => {
    const limiter = await warm([RESERVED, TPM]);
    const lease = await limiter.acquire({ ...ASK, portable: true });
    const token = await lease.token();
    const resumed = await costOf(async () => limiter.leases.resume(token));
    expect(resumed).toEqual({ requests: 1, readUnits: 2, writeUnits: 0 });
    const released = await costOf(async () => limiter.leases.release(lease.id, USER));
    expect(released).toEqual({ requests: 4, readUnits: 2.5, writeUnits: 5 });
  });

  test.each(OPERATIONS)('a %s of a portable lease is one write of one unit per level', async (_, operation) => {
    const limiter = await warm([RESERVED, TPM]);
    const lease = await limiter.acquire({ ...ASK, portable: true });
    expect(await costOf(async () => operation(lease))).toEqual(writes(2));
  });
});
