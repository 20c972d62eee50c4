import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { Random } from '../../src/testing/conformance/random.js';
import { findEngine } from '../../src/testing/dynamodb/index.js';
import { type DynamoWorld, startWorld } from '../support/dynamodb-world.js';
import { workOff } from '../support/stream-world.js';
import { makeTraffic, readTotals, RESOURCES, UsageLedger } from '../support/usage-ledger.js';

const LIMITS = [Limit.perMinute('rpm', 6_000), Limit.perMinute('tpm', 600_000)];
const found = findEngine('extenddb');
const note = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;

/** Four shards from the start, so that two workers have something to share. */
describe.skipIf(found.status !== 'available')(`usage from a stream of several shards${note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({}, 'extenddb');
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  test('is exact to the token and to the call with two workers', { timeout: 600_000 }, async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS });
    const ledger = new UsageLedger();
    await makeTraffic([limiter], space.clock, new Random(5), 500, ledger);
    await Promise.all([workOff(world, { owner: 'a' }), workOff(world, { owner: 'b', leaseMs: 1_000 })]);
    // Whatever one has left to the other.
    await workOff(world, { leaseMs: 1_000 });
    expect(await readTotals(limiter, RESOURCES)).toEqual(ledger.totals());
  });
});
