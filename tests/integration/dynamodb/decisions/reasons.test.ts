import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deadlineIn } from '../../../../src/machine-time.js';
import { buildShardKey, keyItem } from '../../../../src/backends/dynamodb/table/keys.js';
import { send } from '../../../../src/backends/dynamodb/client/requests.js';
import { Limit } from '../../../../src/core/limit.js';
import { splitInto, spreading } from '../../../support/dynamodb/shard/shards.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';

const PARENT = { entityId: 'team', resource: 'gpt-4' };
const CHILD = { entityId: 'user-1', resource: 'gpt-4' };

describe.skipIf(ENGINE.missing)(`reasons of denials on DynamoDB${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  /** A parent whose bucket has four shards, and a child below it. */
  const createChain = async (limits: readonly Limit[], take: Record<string, number>) => {
    const space = await world.space();
    const admin = await space.open();
    await admin.config.setResource('gpt-4', { limits });
    await admin.entities.create({ id: 'team' });
    await admin.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
    await (await space.open()).acquire({ ...PARENT, consume: take });
    await splitInto(4, world, space, PARENT);
    return { space, limiter: await space.open({}, spreading()) };
  };

  /** Removes slots that are neither free nor held, as a crash of an older version could have left them. */
  const loseSlots = async ({ ns, clock }: Space, count: number): Promise<void> => {
    const input = {
      TableName: world.table.name,
      Key: keyItem(buildShardKey(ns, { ...CHILD, shard: 0 })),
      UpdateExpression: 'ADD b_slots_tk :lost SET w = :other',
      ExpressionAttributeValues: { ':lost': { N: String(-1_000 * count) }, ':other': { S: `lost-${clock.now()}` } },
    };
    expect(await send(world.table, 'UpdateItem', input, deadlineIn(10_000))).toMatchObject({ ok: true });
  };

  test('the wait for an ask that is larger than every shard is exact for the refill of all shards', async () => {
    const { space, limiter } = await createChain([Limit.perHour('rpm', 360)], { rpm: 200 });
    const ask = { ...PARENT, consume: { rpm: 260 } };
    const waitMs = await limiter.timeUntilAvailable(ask);
    expect(await limiter.tryAcquire(ask)).toMatchObject({ reason: 'exhausted', retryAfterMs: waitMs });
    await space.clock.advance(Number(waitMs) - 1);
    expect(await limiter.timeUntilAvailable(ask)).toBe(1);
    await space.clock.advance(1);
    expect(await limiter.timeUntilAvailable(ask)).toBe(0);
    expect(await limiter.timeUntilAvailable({ ...PARENT, consume: { rpm: 361 } })).toBeNull();
  });

  test('the wait for slots on several shards ends when enough holders will have expired', async () => {
    const { space, limiter } = await createChain([Limit.concurrent('slots', 12)], { slots: 1 });
    await limiter.acquire({ ...PARENT, consume: { slots: 8 }, leaseTtlMs: 30_000 });
    const ask = { ...PARENT, consume: { slots: 10 } };
    expect(await limiter.timeUntilAvailable(ask)).toBe(30_000);
    expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: false, reason: 'exhausted' });
    expect(await limiter.timeUntilAvailable({ ...PARENT, consume: { slots: 13 } })).toBeNull();
    await space.clock.advance(30_000);
    await limiter.acquire(ask);
  });

  test('a denial by a child does not report a parent of several shards as impossible', async () => {
    const { limiter } = await createChain([Limit.perHour('rpm', 360)], { rpm: 200 });
    await limiter.acquire({ ...CHILD, consume: { rpm: 100 } });
    for (const atomic of [false, true]) {
      const decision = await limiter.tryAcquire({ ...CHILD, consume: { rpm: 300 }, atomic });
      expect(decision).toMatchObject({ granted: false, reason: 'exhausted' });
      expect(decision.statuses.map(({ retryAfterMs }) => retryAfterMs)).not.toContain(null);
    }
  });

  test('an ask for slots that no lease holds is exhausted, not impossible', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: [Limit.concurrent('slots', 3)] });
    await limiter.acquire({ ...CHILD, consume: { slots: 1 } });
    await loseSlots(space, 2);
    const denied = await limiter.tryAcquire({ ...CHILD, consume: { slots: 2 } });
    expect(denied).toMatchObject({ granted: false, reason: 'exhausted', violations: [{ exceeded: true }] });
    expect(await limiter.tryAcquire({ ...CHILD, consume: { slots: 4 } })).toMatchObject({ reason: 'impossible' });
  });
});
