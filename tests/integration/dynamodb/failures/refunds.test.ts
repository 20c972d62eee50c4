import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildShardKey, keyItem } from '../../../../src/backends/dynamodb/table/keys.js';
import { Limit } from '../../../../src/core/limit.js';
import { deadlineIn } from '../../../../src/machine-time.js';
import { fault } from '../../../../src/testing/dynamodb/index.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';

const LIMITS = { limits: [Limit.perMinute('rpm', 60), Limit.concurrent('slots', 3)] };
const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 10 } };
const UPDATES = { operations: ['UpdateItem'] };

describe.skipIf(ENGINE.missing)(`refunds on DynamoDB${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => void (world = await startWorld()));
  afterAll(async () => world?.[Symbol.asyncDispose]());

  const taken = async (space: Space): Promise<number> => {
    const [shard] = await space.shards('user-1', 'gpt-4');
    const rpm = shard?.limits.find(({ limit }) => limit.name === 'rpm');
    return Number(rpm?.consumedMilli) / 1_000;
  };

  const setSlotCapacity = async (space: Space, capacity: string): Promise<void> => {
    const input = {
      TableName: world.table.name,
      Key: keyItem(buildShardKey(space.ns, { entityId: 'user-1', resource: 'gpt-4', shard: 0 })),
      UpdateExpression: 'SET b_slots_cp = :cp',
      ExpressionAttributeValues: { ':cp': { N: capacity } },
    };
    await world.table.transport.send('UpdateItem', input, deadlineIn(10_000));
  };

  test('a refund that landed without an answer counts once, however often the lease is rolled back', async () => {
    const space = await world.space();
    const [limiter, other] = [await space.open(LIMITS), await space.open(LIMITS)];
    const lease = await limiter.acquire(ASK);
    const lost = world.proxy.inject(fault.loseAnswer(), { ...UPDATES, times: 1 });
    const held = world.proxy.inject(fault.holdAnswer(), { ...UPDATES, times: 1 });
    const first = lease.rollback();
    await held.untilFired();
    // Another write replaces the write id, so that the item no longer shows whether the refund landed.
    while ((await taken(space)) !== 0) expect(lost.fired).toBe(1);
    await other.acquire({ ...ASK, consume: { rpm: 1 } });
    held.release();
    await expect(first).rejects.toMatchObject({ code: 'backend.unavailable' });
    await lease.rollback();
    expect(lease.state).toBe('rolled-back');
    expect(await taken(space)).toBe(1);
  });

  test('a refund that did not land is lost and reported, and the tokens stay taken', async () => {
    const space = await world.space();
    const limiter = await space.open(LIMITS);
    const lease = await limiter.acquire(ASK);
    world.proxy.inject(fault.loseRequest(), { ...UPDATES, times: 1 });
    await expect(lease.adjust({ rpm: -4 })).rejects.toMatchObject({ code: 'backend.unavailable' });
    expect(lease.consumed).toEqual({ rpm: 6 });
    await lease.rollback();
    expect(await taken(space)).toBe(10 - 6);
  });

  test('a refund of a lease with slots is sent again until it is answered, because the holder shows whether it landed', async () => {
    const space = await world.space();
    const limiter = await space.open(LIMITS);
    const lease = await limiter.acquire({ ...ASK, consume: { rpm: 10, slots: 1 } });
    world.proxy.inject(fault.loseAnswer(), { ...UPDATES, times: 2 });
    await lease.rollback();
    expect(await taken(space)).toBe(0);
  });

  test('a refund that landed in an item that the client cannot read counts once', async () => {
    const space = await world.space();
    const limiter = await space.open(LIMITS);
    const lease = await limiter.acquire(ASK);
    await setSlotCapacity(space, '2000.5');
    await expect(lease.rollback()).rejects.toThrow();
    await expect(lease.rollback()).resolves.toBeUndefined();
    await setSlotCapacity(space, '3000');
    expect(await taken(space)).toBe(0);
  });

  test('a refund that could not be sent is sent by the next call', async () => {
    const space = await world.space();
    const limiter = await space.open(LIMITS);
    const lease = await limiter.acquire(ASK);
    world.proxy.inject(fault.accessDenied(), { ...UPDATES, times: 1 });
    await expect(lease.rollback()).rejects.toMatchObject({ code: 'backend.denied' });
    await lease.rollback();
    expect(await taken(space)).toBe(0);
  });
});
