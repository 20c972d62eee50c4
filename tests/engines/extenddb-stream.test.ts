import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deadlineIn } from '../../src/machine-time.js';
import { buildAuditKey } from '../../src/backends/dynamodb/table/keys.js';
import { deleteItems } from '../../src/backends/dynamodb/client/batches.js';
import { Limit } from '../../src/core/limit.js';
import { runWorker } from '../../src/backends/dynamodb/stream/worker/worker.js';
import { Random } from '../../src/testing/conformance/kit/random.js';
import { findEngine } from '../../src/testing/dynamodb/index.js';
import { fakeClock } from '../../src/testing/fake-clock.js';
import { type DynamoWorld, startWorld } from '../support/dynamodb/world.js';
import { archiveInMemory, workOff } from '../support/stream/world.js';
import { makeTraffic, readTotals, RESOURCES, UsageLedger } from '../support/stream/usage-ledger.js';

const LIMITS = [Limit.perMinute('rpm', 6_000), Limit.perMinute('tpm', 600_000)];
const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 2 } };
const DAY_MS = 86_400_000;
const found = findEngine('extenddb');
const note = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;

/** The stream has four shards from the start, so that two workers share them. */
describe.skipIf(found.status !== 'available')(`usage from a stream of several shards${note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({}, 'extenddb');
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  test(
    'usage from a stream of several shards is exact to the token and to the call with two workers',
    { timeout: 600_000 },
    async () => {
      const space = await world.space();
      const limiter = await space.open({ limits: LIMITS });
      const ledger = new UsageLedger();
      await makeTraffic([limiter], space.clock, new Random(5), 500, ledger);
      await Promise.all([workOff(world, { owner: 'a' }), workOff(world, { owner: 'b', leaseMs: 1_000 })]);
      // Reads what either worker left to the other.
      await workOff(world, { leaseMs: 1_000 });
      expect(await readTotals(limiter, RESOURCES)).toEqual(ledger.totals());
    },
  );

  test(
    'expired audit records are archived, and an expired bucket leaves its usage unchanged',
    { timeout: 400_000 },
    async () => {
      const space = await world.space();
      // Buckets expire after days, audit records and usage after months.
      const past = fakeClock(Date.now() - 20 * DAY_MS);
      const open = async () => space.open({ limits: LIMITS, clock: past });
      const limiter = await open();
      const archivist = await space.open({ limits: LIMITS, clock: fakeClock(Date.now() - 100 * DAY_MS) });
      for (const id of ['user-1', 'user-2']) await archivist.entities.create({ id });
      await limiter.acquire(ASK);
      // A record that a client deletes is not archived.
      const { items } = await limiter.audit.list({ entityId: 'user-2' });
      const keys = items.map(({ id }) => buildAuditKey(space.ns, 'user-2', id));
      expect(keys).toHaveLength(1);
      await deleteItems(world.table, keys, deadlineIn(10_000));

      const archive = archiveInMemory();
      archive.failNext = 2;
      const errors: unknown[] = [];
      const { endpoint, region } = world.engine;
      const stop = new AbortController();
      let tell = (): void => {};
      const isArchived = new Promise<void>((resolve) => (tell = resolve));
      const worker = runWorker({
        table: world.table.name,
        endpoint,
        region,
        archive,
        pollMs: 20,
        progressMs: 20,
        signal: stop.signal,
        onError: (error) => errors.push(error),
        onProgress: ({ archived }) => {
          if (archived > 0) tell();
        },
      });
      await isArchived;
      while ((await space.shards(ASK.entityId, ASK.resource)).length > 0) await new Promise(setImmediate);
      await (await open()).acquire(ASK);
      stop.abort();
      await worker;
      await workOff(world);

      expect(errors).toHaveLength(2);
      const lines = [...archive.files.values()].map((bytes) => gunzipSync(bytes).toString());
      expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
        { namespace: space.ns, action: 'entity.create', subject: 'user-1' },
      ]);
      const ledger = new UsageLedger();
      ledger.note(ASK.entityId, ASK.resource, past.now(), { rpm: 4, acquires: 2 });
      expect(await readTotals(await open(), [ASK.resource])).toEqual(ledger.totals());
    },
  );
});
