import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../../src/core/limit.js';
import { shapeOf, splitInto, spreading, sumOf } from '../../../support/dynamodb/shard/shards.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';

const BUCKET = { entityId: 'user-1', resource: 'gpt-4' };
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const RPM = Limit.perDay('rpm', 64);
const TPM = Limit.unlimited('tpm');

describe.skipIf(ENGINE.missing)(`unlimited limits of a bucket of several shards${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({ record: true });
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  const shards = (space: Space) => space.shards('user-1', 'gpt-4');
  const counted = async (space: Space): Promise<number> => sumOf(await shards(space), 'tpm', 0).consumed / 1_000;
  const sharded = async (count: number) => {
    const space = await world.space();
    const limiter = await space.open({ limits: [RPM, TPM] }, spreading());
    await limiter.acquire({ ...BUCKET, consume: { rpm: 0, tpm: 1 } });
    await space.clock.advance(MINUTE_MS);
    await splitInto(count, world, space, BUCKET);
    return { space, limiter };
  };

  test('an unlimited limit counts and settles on the shard that an ask is taken from', async () => {
    const { space, limiter } = await sharded(4);
    for (let taken = 1; taken <= 12; taken++) {
      const lease = await limiter.acquire({ ...BUCKET, consume: { rpm: 1, tpm: 10 } });
      await lease.settle({ tpm: 10 + taken });
    }
    expect(await counted(space)).toBe(1 + 120 + 78);
    const [bucket] = (await limiter.buckets.list({ entityId: 'user-1' })).items;
    const tpm = bucket?.limits.find(({ limit }) => limit.name === 'tpm');
    expect(tpm).toMatchObject({ available: Infinity, consumed: 199 });
  });

  test.each([true, false])(
    'an unlimited limit counts once in an ask that takes from several shards (atomic: %s)',
    async (atomic) => {
      const { space, limiter } = await sharded(4);
      const lease = await limiter.acquire({ ...BUCKET, consume: { rpm: 40, tpm: 1e12 }, atomic });
      expect(await counted(space)).toBe(1 + 1e12);
      await lease.rollback();
      expect(await counted(space)).toBe(1);
      expect(await limiter.available(BUCKET)).toEqual({ rpm: 64, tpm: Infinity });
    },
  );

  test('an unlimited limit counts nothing in an ask that all shards together refuse', async () => {
    const { space, limiter } = await sharded(4);
    await limiter.acquire({ ...BUCKET, consume: { rpm: 40, tpm: 1 } });
    const refused = await limiter.tryAcquire({ ...BUCKET, consume: { rpm: 40, tpm: 500 } });
    expect(refused).toMatchObject({ granted: false, reason: 'exhausted' });
    expect(refused.granted ? [] : refused.violations.map(({ limit }) => limit.name)).toEqual(['rpm']);
    expect(await counted(space)).toBe(2);
  });

  test('an unlimited limit keeps its counter when shards merge', async () => {
    const { space, limiter } = await sharded(2);
    for (let taken = 0; taken < 8; taken++) await limiter.acquire({ ...BUCKET, consume: { tpm: 100 } });
    const calm = await space.open({ limits: [RPM, TPM] });
    const shape = async (): Promise<string> => {
      await space.clock.advance(MINUTE_MS);
      await calm.acquire({ ...BUCKET, consume: { tpm: 0 } });
      return shapeOf(await shards(space));
    };
    await space.clock.advance(HOUR_MS);
    await expect.poll(shape, { timeout: 10_000 }).toBe('0/1');
    expect(await counted(space)).toBe(801);
    expect((await shards(space))[0]?.limits.map(({ limit }) => String(limit))).toEqual(['rpm:64/day', 'tpm:unlimited']);
  });

  test('a rate that becomes unlimited is lifted on every shard, and starts full when the limit returns', async () => {
    const { space, limiter } = await sharded(4);
    await limiter.config.setSystem({ limits: [RPM, TPM] });
    await limiter.acquire({ ...BUCKET, consume: { rpm: 64 } });
    await space.clock.advance(1_000);
    await limiter.config.setSystem({ limits: [Limit.unlimited('rpm'), TPM] });
    for (let taken = 0; taken < 12; taken++) await limiter.acquire({ ...BUCKET, consume: { rpm: 100 } });
    await space.clock.advance(1_000);
    await limiter.config.setSystem({ limits: [RPM, TPM] });
    await limiter.acquire({ ...BUCKET, consume: { rpm: 64 } });
    expect(await limiter.tryAcquire({ ...BUCKET, consume: { rpm: 1 } })).toMatchObject({ granted: false });
    expect(sumOf(await shards(space), 'rpm', 0).consumed).toBe((64 + 1_200 + 64) * 1_000);
  });

  test('slots that become unlimited are lifted on every shard, and held slots stay held when the limit returns', async () => {
    const space = await world.space();
    const limiter = await space.open({}, spreading());
    const set = async (slots: Limit): Promise<void> => {
      await space.clock.advance(1_000);
      await limiter.config.setSystem({ limits: [Limit.perDay('rpm', 64), slots] });
    };
    await set(Limit.concurrent('slots', 8));
    const held = await limiter.acquire({ ...BUCKET, consume: { slots: 1 }, leaseTtlMs: HOUR_MS });
    await space.clock.advance(MINUTE_MS);
    await splitInto(4, world, space, BUCKET);
    await set(Limit.unlimited('slots'));
    for (let taken = 0; taken < 12; taken++) await limiter.acquire({ ...BUCKET, consume: { slots: 3 } });
    await set(Limit.concurrent('slots', 8));
    await limiter.acquire({ ...BUCKET, consume: { slots: 7 }, leaseTtlMs: HOUR_MS });
    expect(await limiter.tryAcquire({ ...BUCKET, consume: { slots: 1 } })).toMatchObject({ granted: false });
    await held.release();
    expect((await limiter.available(BUCKET))['slots']).toBe(1);
  });

  test('a reset of all shards does not change an unlimited limit', async () => {
    const { space, limiter } = await sharded(2);
    await limiter.acquire({ ...BUCKET, consume: { rpm: 50, tpm: 30 } });
    await limiter.buckets.reset(BUCKET);
    expect(await limiter.available(BUCKET)).toEqual({ rpm: 64, tpm: Infinity });
    expect(await counted(space)).toBe(31);
  });
});
