import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../src/core/limit.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../support/dynamodb/world.js';
import { countByShakyReaders, openSpending } from '../../support/stream/exactly-once.js';
import { workOff } from '../../support/stream/world.js';
import { readTotals, RESOURCES, UsageLedger } from '../../support/stream/usage-ledger.js';

/** A small version of `tests/engines/stream-exactly-once.test.ts`. */
describe.skipIf(ENGINE.missing)(`usage from the stream${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  test(
    'usage is exact to the token and to the call, however the stream is delivered',
    { timeout: 120_000 },
    async () => {
      const spending = await openSpending(world, 6);
      await spending.spend(600);
      const { usage, repeated } = await countByShakyReaders(world, spending, world, 6);
      const expected = spending.ledger.totals();
      expect(usage).toEqual(expected);
      expect(repeated).toBeGreaterThan(100);
      expect(Object.keys(expected).length).toBeGreaterThan(30);

      await Promise.all([workOff(world, { owner: 'both' }), workOff(world, { owner: 'both' })]);
      expect(await readTotals(spending.limiter, RESOURCES)).toEqual(expected);
    },
  );

  test('usage counts in the hour in which it happened, however late it is delivered', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: [Limit.perMinute('rpm', 60)] });
    const ledger = new UsageLedger();
    const ask = { entityId: 'late', resource: 'gpt-4', consume: { rpm: 2 } };
    await limiter.acquire(ask);
    ledger.note('late', 'gpt-4', space.clock.now(), { rpm: 2, acquires: 1 });
    await space.clock.advance(2 * 3_600_000);
    await workOff(world);
    // The first acquire creates the bucket and counts like any other.
    expect(await readTotals(limiter, ['gpt-4'])).toEqual(ledger.totals());
  });
});
