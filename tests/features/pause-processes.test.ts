import { PutItemCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Transport } from '../../src/backends/dynamodb/client/transport.js';
import { VERSION_KEY } from '../../src/backends/dynamodb/table/keys.js';
import { Limit } from '../../src/core/limit.js';
import type { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { fault } from '../../src/testing/dynamodb/index.js';
import { shapeOf, splitInto, splitShard, spreading } from '../support/dynamodb/shard/shards.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../support/dynamodb/world.js';

const PROCESSES = 8;
const RESOURCE = 'gpt-4';
const BUCKET = { entityId: 'user-1', resource: RESOURCE };
const TEAM = { entityId: 'team', resource: RESOURCE };
const REASON = 'vendor';
const LIMITS = [Limit.perHour('rpm', 1_000_000)];
const DENY_CACHE_MS = 1_000;
const CONFIG_CACHE_MS = 60_000;

describe.skipIf(ENGINE.missing)(`pauses of processes that share a table${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({ record: true });
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  const askOf = (process: number) => ({ entityId: `user-${process}`, resource: RESOURCE, consume: { rpm: 1 } });
  /** Each process serves its own child of the team. */
  const openProcesses = async (space: Space): Promise<readonly RateLimiter[]> => {
    const limiters: RateLimiter[] = [];
    for (let process = 0; process < PROCESSES; process++) {
      limiters.push(await space.open({ limits: LIMITS }, spreading(process + 1)));
    }
    await limiters[0]!.entities.create({ id: 'team' });
    for (let process = 0; process < PROCESSES; process++) {
      await limiters[0]!.entities.create({ id: `user-${process}`, parentId: 'team', cascade: true });
    }
    for (const [process, limiter] of limiters.entries()) await limiter.acquire(askOf(process));
    return limiters;
  };
  /** Asks without a break until the first denial, and returns its reason. */
  const askUntilDenied = async (limiter: RateLimiter, process: number): Promise<string> => {
    for (;;) {
      const decisions = await Promise.all(Array.from({ length: 5 }, async () => limiter.tryAcquire(askOf(process))));
      const denied = decisions.find(({ granted }) => !granted);
      if (denied !== undefined && !denied.granted) return denied.reason;
    }
  };
  const grants = async (space: Space): Promise<number> =>
    (await space.shards('team', RESOURCE)).reduce((sum, { acquires }) => sum + acquires, 0);

  test.each([1, 4])(
    'eight processes at full speed take nothing after the pause of their parent in %i shards was written, and all resume within denyCacheMs',
    async (shards) => {
      const space = await world.space();
      const limiters = await openProcesses(space);
      await splitInto(shards, world, space, TEAM);
      const asking = limiters.map(askUntilDenied);
      await expect.poll(async () => grants(space)).toBeGreaterThan(3 * PROCESSES);
      const operator = await space.open({ limits: LIMITS });
      await operator.pause({ ...TEAM, forMs: 3_600_000, reason: REASON });
      const atPause = await grants(space);
      expect(await Promise.all(asking)).toEqual(limiters.map(() => 'paused'));
      for (const [process, limiter] of limiters.entries()) {
        expect(await limiter.tryAcquire(askOf(process))).toMatchObject({ granted: false, reason: 'paused' });
      }
      expect(await grants(space)).toBe(atPause);
      expect(atPause).toBeGreaterThan(PROCESSES);
      await operator.resume(TEAM);
      await space.clock.advance(DENY_CACHE_MS);
      for (const [process, limiter] of limiters.entries()) await limiter.acquire(askOf(process));
      expect(await grants(space)).toBe(atPause + PROCESSES);
      expect(space.errors).toEqual([]);
    },
  );

  test('a pause of the parent itself stops eight processes within configCacheMs, and a resume reaches all within denyCacheMs', async () => {
    const space = await world.space();
    const limiters = await openProcesses(space);
    const operator = await space.open({ limits: LIMITS });
    await operator.pause({ entityId: 'team', forMs: 'forever', reason: REASON });
    limiters[0]!.config.cache.clear();
    await expect(limiters[0]!.acquire(askOf(0))).rejects.toMatchObject({ code: 'entity.paused' });
    await space.clock.advance(CONFIG_CACHE_MS);
    for (const [process, limiter] of limiters.entries()) {
      await expect(limiter.acquire(askOf(process))).rejects.toMatchObject({ code: 'entity.paused' });
    }
    await operator.resume({ entityId: 'team' });
    await space.clock.advance(DENY_CACHE_MS);
    for (const [process, limiter] of limiters.entries()) await limiter.acquire(askOf(process));
  });

  test('each of eight processes sees a pause of the parent itself at once after it has cleared its own config cache', async () => {
    const space = await world.space();
    const limiters = await openProcesses(space);
    const operator = await space.open({ limits: LIMITS });
    await operator.pause({ entityId: 'team', forMs: 'forever', reason: REASON });
    for (const [process, limiter] of limiters.entries()) {
      expect((await limiter.tryAcquire(askOf(process))).granted).toBe(true);
      limiter.config.cache.clear();
      expect(await limiter.tryAcquire(askOf(process))).toMatchObject({ reason: 'paused', decidedBy: 'store' });
    }
  });

  test('a known pause is denied without a request for denyCacheMs', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS });
    await limiter.acquire(askOf(1));
    for (const target of [BUCKET, { entityId: 'user-1' }]) {
      await limiter.pause({ ...target, forMs: 3_600_000, reason: REASON });
      expect(await limiter.tryAcquire(askOf(1))).toMatchObject({ reason: 'paused', decidedBy: 'store' });
      await space.clock.advance(DENY_CACHE_MS - 1);
      world.proxy.requests.clear();
      expect(await limiter.tryAcquire(askOf(1))).toMatchObject({ reason: 'paused', decidedBy: 'deny-cache' });
      expect(world.proxy.requests.recorded).toEqual([]);
      await limiter.resume(target);
    }
  });

  test('a split that was planned before a pause is refused, so that no shard is left without it', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS });
    await limiter.acquire(askOf(1));
    // The helper writes to the engine without the proxy, so the pause is made between its read and its write.
    const { transport } = world.table;
    let paused: Promise<unknown> | null = null;
    const pausing: Transport = {
      ...transport,
      send: async (...request) => {
        if (request[0] === 'TransactWriteItems') {
          await (paused ??= limiter.pause({ ...BUCKET, forMs: 3_600_000, reason: REASON }));
        }
        return transport.send(...request);
      },
    };
    const table = { ...world.table, transport: pausing };
    expect(await splitShard({ ...world, table }, space, BUCKET, 0)).toBe(null);
    expect(paused).not.toBe(null);
    expect(await splitShard(world, space, BUCKET, 0)).toBe('split');
    const shards = await space.shards('user-1', RESOURCE);
    expect([shapeOf(shards), shards.map(({ pause }) => pause?.reason)]).toEqual(['0/2 1/2', [REASON, REASON]]);
  });

  test('a pause that stops halfway applies, and a repetition completes it', async () => {
    const space = await world.space();
    const [one, other] = [await space.open({ limits: LIMITS }), await space.open({ limits: LIMITS })];
    for (const limiter of [one, other]) await limiter.acquire(askOf(1));
    const denied = world.proxy.inject(fault.accessDenied(), { operations: ['UpdateItem'] });
    await expect(one.pause({ ...BUCKET, forMs: 3_600_000, reason: REASON })).rejects.toMatchObject({
      code: 'backend.denied',
    });
    denied.release();
    expect(await one.tryAcquire(askOf(1))).toMatchObject({ reason: 'paused' });
    expect((await other.tryAcquire(askOf(1))).granted).toBe(true);
    expect((await other.buckets.get(BUCKET))?.paused).toMatchObject({ reason: REASON });
    await one.pause({ ...BUCKET, forMs: 3_600_000, reason: REASON });
    expect(await other.tryAcquire(askOf(1))).toMatchObject({ reason: 'paused' });
    expect((await one.audit.list({ entityId: 'user-1' })).items.map(({ action }) => action)).toEqual(['bucket.pause']);
  });

  test('a resume that stops halfway leaves the bucket paused, and a repetition completes it', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS });
    await limiter.pause({ ...BUCKET, forMs: 3_600_000, reason: REASON });
    const denied = world.proxy.inject(fault.accessDenied(), { operations: ['UpdateItem'] });
    await expect(limiter.resume(BUCKET)).rejects.toMatchObject({ code: 'backend.denied' });
    denied.release();
    expect(await limiter.tryAcquire(askOf(1))).toMatchObject({ reason: 'paused' });
    expect(await limiter.resume(BUCKET)).toBe(true);
    await limiter.acquire(askOf(1));
  });

  test('a bucket that is created to be paused has a ttl after the end of its pause, and none if the pause has no end', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS });
    const endMs = space.clock.now() + 3 * 86_400_000;
    await limiter.pause({ ...BUCKET, untilMs: endMs, reason: REASON });
    await limiter.pause({ ...BUCKET, entityId: 'user-2', forMs: 'forever', reason: REASON });
    const [[ending], [lasting]] = [await space.shards('user-1', RESOURCE), await space.shards('user-2', RESOURCE)];
    expect(ending?.ttlSec).toBeGreaterThan(endMs / 1_000);
    expect(lasting?.ttlSec).toBeNull();
  });

  test('a pause whose answers are lost is written once, on every shard', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS });
    await limiter.acquire(askOf(1));
    await splitInto(2, world, space, BUCKET);
    const lost = world.proxy.inject(fault.loseAnswer(), { operations: ['UpdateItem', 'TransactWriteItems'], times: 3 });
    await limiter.pause({ ...BUCKET, forMs: 3_600_000, reason: REASON });
    lost.release();
    const shards = await space.shards('user-1', RESOURCE);
    expect(shards.map(({ pause, ttlSec }) => [pause?.reason, ttlSec])).toEqual([
      [REASON, null],
      [REASON, null],
    ]);
    expect((await limiter.audit.list({ entityId: 'user-1' })).items).toHaveLength(1);
  });

  test('of a pause and a resume at the same time one applies, to all shards and to the config', async () => {
    const space = await world.space();
    const [one, other] = [await space.open({ limits: LIMITS }), await space.open({ limits: LIMITS })];
    await one.acquire(askOf(1));
    await splitInto(4, world, space, BUCKET);
    for (let round = 0; round < 10; round++) {
      const pausing = one.pause({ ...BUCKET, forMs: 3_600_000 + round, reason: REASON });
      const resuming = other.resume(BUCKET);
      await Promise.all(round % 2 === 0 ? [pausing, resuming] : [resuming, pausing]);
      const ends = new Set((await space.shards('user-1', RESOURCE)).map(({ pause }) => pause?.endMs ?? null));
      expect(ends.size).toBe(1);
      const isPaused = !ends.has(null);
      const own = { ...askOf(1), limits: [Limit.perHour('rpm', 50)] };
      one.config.cache.clear();
      expect((await one.tryAcquire(own)).granted).toBe(!isPaused);
      expect(await other.resume(BUCKET)).toBe(isPaused);
    }
  });

  test('a table of schema version 1 refuses a pause and names the command, and serves everything else', async () => {
    const space = await world.space();
    const { endpoint, region, credentials } = world.engine;
    const client = new DynamoDBClient({ endpoint, region, credentials });
    const putVersion = async (version: string): Promise<void> => {
      const fields = { schema_version: { N: version }, min_client_version: { N: version } };
      const Item = { PK: { S: VERSION_KEY.PK }, SK: { S: VERSION_KEY.SK }, ...fields };
      await client.send(new PutItemCommand({ TableName: world.table.name, Item }));
    };
    await putVersion('1');
    const limiter = await space.open({ limits: LIMITS });
    for (const target of [BUCKET, { entityId: 'user-1' }]) {
      await expect(limiter.pause({ ...target, forMs: 1_000, reason: REASON })).rejects.toMatchObject({
        code: 'schema.mismatch',
        command: `headgate upgrade --table ${world.table.name}`,
      });
      expect(await limiter.resume(target)).toBe(false);
    }
    const paused = { namespace: space.namespace, entities: { 'user-1': { paused: { reason: REASON } } } };
    await expect(limiter.manifest.apply(paused)).rejects.toThrow('a pause needs 2');
    await limiter.acquire(askOf(1));
    await putVersion('2');
    client.destroy();
  });
});
