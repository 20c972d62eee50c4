import { describe, expect, test } from 'vitest';
import { findEngine } from '../../src/testing/dynamodb/index.js';
import { startWorld } from '../support/dynamodb/world.js';
import { countByKilledWorkers, countByShakyReaders, openSpending } from '../support/stream/exactly-once.js';

const CALLS = 5_000;
const KILLS = 8;
/** The 20,000 operations on dynoxide use four tables, because its writes become slower as its stream grows. */
const RUNS = [
  ['dynoxide', 1],
  ['dynoxide', 2],
  ['dynoxide', 3],
  ['dynoxide', 4],
  ['extenddb', 5],
] as const;

/** The full size. `npm test` runs a small version. */
describe.each(RUNS)('usage of a table on %s (seed %i)', (engine, seed) => {
  const found = findEngine(engine);
  const note = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;

  test.skipIf(found.status !== 'available')(
    `usage is exact to the token and to the call after ${CALLS} operations${note}`,
    { timeout: 600_000 },
    async () => {
      await using world = await startWorld({}, engine);
      await using elsewhere = await startWorld({}, engine);
      const spending = await openSpending(world, seed);
      const workers = await countByKilledWorkers(world, spending, { calls: CALLS, kills: KILLS, seed });
      const expected = spending.ledger.totals();
      expect(Object.keys(expected).length).toBeGreaterThan(200);
      expect(workers.usage).toEqual(expected);
      expect(workers.signals).toEqual(Array.from({ length: KILLS + 2 }, () => 'SIGKILL'));
      const readers = await countByShakyReaders(world, spending, elsewhere, seed);
      expect(readers.usage).toEqual(expected);
      expect(readers.repeated).toBeGreaterThan(CALLS / 10);
    },
  );
});
