import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DynamoWorld, ENGINE, startWorld } from '../support/dynamodb/world.js';
import { countByKilledWorkers, openSpending } from '../support/stream/exactly-once.js';

const KILLS = 3;

/** A small version of `tests/engines/stream-exactly-once.test.ts`. */
describe.skipIf(ENGINE.missing)(`workers that are killed with -9${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  test(
    'two concurrent workers that are killed again and again count every acquire exactly once',
    { timeout: 300_000 },
    async () => {
      const spending = await openSpending(world, 9);
      const { usage, signals } = await countByKilledWorkers(world, spending, { calls: 300, kills: KILLS, seed: 9 });
      expect(usage).toEqual(spending.ledger.totals());
      expect(signals).toEqual(Array.from({ length: KILLS + 2 }, () => 'SIGKILL'));
    },
  );
});
