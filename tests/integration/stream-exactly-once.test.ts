import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { type BatchTools, processBatch } from '../../src/stream/process-batch.js';
import type { StreamApi } from '../../src/stream/stream-api.js';
import { Random } from '../../src/testing/conformance/random.js';
import { type DynamoWorld, ENGINE, startWorld } from '../support/dynamodb-world.js';
import { batchTools, failingTable, openStream, readRecords, sized, workOff } from '../support/stream-world.js';
import { makeTraffic, readTotals, RESOURCES, UsageLedger } from '../support/usage-ledger.js';

const LIMITS = [Limit.perMinute('rpm', 6_000), Limit.perMinute('tpm', 600_000)];
const MOST_PER_BATCH = 100;

/** A reader that crashes and starts again at an earlier place, gets records twice, and repeats from what failed. */
async function deliver(tools: BatchTools, label: string, records: readonly unknown[], random: Random): Promise<void> {
  for (let done = 0; done < records.length;) {
    const batch = records.slice(done, done + random.whole(1, MOST_PER_BATCH));
    const repeated = random.whole(1, 4) === 1 ? batch.flatMap((record) => [record, record]) : batch;
    const { failures } = await processBatch(tools, label, repeated);
    const [failure] = failures;
    // In halves, as Lambda does if it is told to, or from the record that failed on.
    if (failure === undefined) done += batch.length;
    else done += batch.indexOf(repeated[failure.at]);
    if (random.whole(1, 8) === 1) done -= random.whole(0, Math.min(done, MOST_PER_BATCH));
  }
}

describe.skipIf(ENGINE.missing)(`usage that is counted from the stream${ENGINE.note}`, () => {
  let world: DynamoWorld;
  let stream: StreamApi;

  beforeAll(async () => {
    world = await startWorld();
    stream = await openStream(world);
  });
  afterAll(async () => {
    stream?.close();
    await world?.[Symbol.asyncDispose]();
  });

  test('is exact to the token and to the call, however the stream is delivered', { timeout: 600_000 }, async () => {
    const random = new Random(6);
    const space = await world.space();
    const limiters = [await space.open({ limits: LIMITS }), await space.open({ limits: LIMITS })];
    const ledger = new UsageLedger();
    await makeTraffic(limiters, space.clock, random, sized(1_000, 20_000), ledger);
    const records = await readRecords(stream);

    const shaky = batchTools(failingTable(world.table, random, 1));
    await Promise.all([
      deliver(shaky, stream.label, records, new Random(1)),
      deliver(shaky, stream.label, records, new Random(2)),
    ]);
    expect(await readTotals(limiters[0]!, RESOURCES)).toEqual(ledger.totals());
    expect(Object.keys(ledger.totals()).length).toBeGreaterThan(30);

    await workOff(world);
    expect(await readTotals(limiters[0]!, RESOURCES)).toEqual(ledger.totals());
  });

  test('is the same with two workers that race from the beginning', { timeout: 600_000 }, async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS });
    const ledger = new UsageLedger();
    await makeTraffic([limiter], space.clock, new Random(7), sized(300, 6_000), ledger);
    await Promise.all([workOff(world, { owner: 'a', leaseMs: 1_000 }), workOff(world, { owner: 'b', leaseMs: 1_000 })]);
    expect(await readTotals(limiter, RESOURCES)).toEqual(ledger.totals());
  });

  test('lands in the hour in which it happened, however late it is delivered', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS });
    const ledger = new UsageLedger();
    const ask = { entityId: 'late', resource: 'gpt-4', consume: { rpm: 2 } };
    await limiter.acquire(ask);
    ledger.note('late', 'gpt-4', space.clock.now(), { rpm: 2, acquires: 1 });
    await space.clock.advance(2 * 3_600_000);
    await workOff(world);
    // The first acquire is the creation of the bucket, which counts like any other.
    expect(await readTotals(limiter, ['gpt-4'])).toEqual(ledger.totals());
  });
});
