import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../../src/core/limit.js';
import type { LimiterEvent } from '../../../../src/limiter/events/limiter-event.js';
import { shapeOf } from '../../../support/dynamodb/shard/shards.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../../support/dynamodb/world.js';

const BUCKET = { entityId: 'user-1', resource: 'gpt-4' };
const HOUR_MS = 3_600_000;

describe.skipIf(ENGINE.missing)(`the events of shards${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  test('a split and a merge of this process are events that name the bucket', async () => {
    const space = await world.space();
    const events: LimiterEvent[] = [];
    const onEvent = (event: LimiterEvent): void => void (event.type === 'decision' || events.push(event));
    const options = { limits: [Limit.perDay('rpd', 4_000)], onEvent };
    const eager = { pressure: { paceAbove: 1e9, splitAbove: -1 } };
    const busy = await space.open(options, eager);
    for (let second = 0; second < 4; second++) {
      await busy.acquire({ ...BUCKET, consume: { rpd: 1 } });
      await space.clock.advance(1_000);
    }
    const told = { namespace: space.namespace, ...BUCKET };
    await expect.poll(() => events).toEqual([{ type: 'split', ...told }]);
    expect(shapeOf(await space.shards('user-1', 'gpt-4'))).toBe('0/2 1/2');
    await space.clock.advance(2 * HOUR_MS);
    const quiet = await space.open(options);
    await quiet.acquire({ ...BUCKET, consume: { rpd: 1 } });
    await space.clock.advance(60_000);
    await quiet.acquire({ ...BUCKET, consume: { rpd: 1 } });
    await expect.poll(() => events[1]).toEqual({ type: 'merge', ...told });
  });
});
