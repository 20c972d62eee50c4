import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { fault } from '../../src/testing/dynamodb/index.js';
import { type DynamoWorld, ENGINE, startWorld } from '../support/dynamodb/world.js';

const ENTITIES = 1_000;

describe.skipIf(ENGINE.missing)(`a burst of new entities${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  // The number of grants depends on the machine, so it is printed and not asserted.
  test('1,000 new entities at once share their config reads, and each call ends with a decision or an outage', async () => {
    const space = await world.space();
    const timeouts = { callMs: 1_000, acquireMs: 2_000 };
    const limiter = await space.open({ limits: [Limit.perMinute('rpm', 60)], timeouts });
    world.proxy.inject(fault.holdAnswer(5));
    world.proxy.requests.clear();
    const ends = await Promise.all(
      Array.from({ length: ENTITIES }, async (_, at) => {
        const ask = { entityId: `new-${at}`, resource: 'gpt-4', consume: { rpm: 1 } };
        const decision = await limiter.tryAcquire(ask).catch((error: unknown) => error as { readonly code: string });
        if ('code' in decision) return decision.code;
        return decision.granted ? 'granted' : decision.reason;
      }),
    );
    const count = (end: string): number => ends.filter((one) => one === end).length;
    const [granted, contended, out] = [count('granted'), count('contended'), count('backend.unavailable')];
    const reads = world.proxy.requests.count('BatchGetItem');
    console.log(`new entities: ${granted} granted, ${contended} contended, ${out} timed out; ${reads} config reads`);
    expect(granted + contended + out).toBe(ENTITIES);
    expect(reads).toBeLessThan(ENTITIES / 5);
  });
});
