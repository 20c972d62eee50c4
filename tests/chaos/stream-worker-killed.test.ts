import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { Random } from '../../src/testing/conformance/random.js';
import { type DynamoWorld, ENGINE, startWorld } from '../support/dynamodb-world.js';
import { ended, forkable } from '../support/fork-bundled.js';
import { sized, workOff } from '../support/stream-world.js';
import type { WorkerOrder } from '../support/stream-worker.js';
import { makeTraffic, readTotals, RESOURCES, UsageLedger } from '../support/usage-ledger.js';

const LIMITS = [Limit.perMinute('rpm', 6_000), Limit.perMinute('tpm', 600_000)];

describe.skipIf(ENGINE.missing)(`a worker that is killed with -9${ENGINE.note}`, () => {
  let world: DynamoWorld;
  let start: Awaited<ReturnType<typeof forkable>>;

  beforeAll(async () => {
    world = await startWorld();
    start = await forkable('stream-worker.ts');
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  test('again and again leaves nothing uncounted, and nothing counted twice', { timeout: 300_000 }, async () => {
    const random = new Random(9);
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS });
    const ledger = new UsageLedger();
    const { endpoint, region } = world.engine;
    const order: WorkerOrder = { table: world.table.name, region, endpoint };
    let killed = 0;
    for (let round = 0; round < sized(3, 20); round++) {
      const child = start(JSON.stringify(order));
      const exit = ended(child);
      const traffic = makeTraffic([limiter], space.clock, random, sized(100, 1_000), ledger);
      // At the first word, or a few words later: in the middle of whatever it does then.
      for (let words = random.whole(1, 5); words > 0; words--) await once(child, 'message');
      child.kill('SIGKILL');
      expect(await exit).toBe('SIGKILL');
      killed += 1;
      await traffic;
    }
    expect(killed).toBe(sized(3, 20));
    // Its lease is still there, and over soon: whoever comes next goes on where it was.
    await workOff(world);
    expect(await readTotals(limiter, RESOURCES)).toEqual(ledger.totals());
  });
});
