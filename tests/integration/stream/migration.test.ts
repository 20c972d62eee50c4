import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDynamoDBBackend } from '../../../src/backends/dynamodb/dynamodb.js';
import { runMigrations } from '../../../src/backends/dynamodb/migrations/run.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { decodeChange, type BucketChange } from '../../../src/backends/dynamodb/stream/decode.js';
import { processBatch } from '../../../src/backends/dynamodb/stream/process-batch.js';
import { openSdkStream } from '../../../src/backends/dynamodb/stream/worker/sdk-stream.js';
import { foldUsage } from '../../../src/backends/dynamodb/stream/usage/usage.js';
import { fakeClock } from '../../../src/testing/fake-clock.js';
import { ENGINE } from '../../support/dynamodb/world.js';
import { LAYOUTS, legacyTable } from '../../support/migration/legacy-tables.js';
import { LegacyWorld } from '../../support/migration/legacy-world.js';
import { batchTools, readRecords } from '../../support/stream/world.js';

describe.skipIf(ENGINE.missing)(`the stream of a migrated table${ENGINE.note}`, () => {
  let world: LegacyWorld;

  beforeAll(async () => {
    world = await LegacyWorld.start();
  });
  afterAll(async () => world?.stop());

  test.each(LAYOUTS)(
    'the stream of a table of layout %s counts only what is taken after the migration',
    async (layout) => {
      const legacy = legacyTable(layout, 40, 9);
      const table = await world.table([], { stream: true });
      await world.put(table.name, legacy.items);
      const stream = await openSdkStream(table, world.reach);
      await runMigrations({ tableName: table.name, ...world.reach });

      // The stream also has the writes of the old clients, because a worker begins with the oldest change.
      const changes = (await readRecords(stream)).map((record) => decodeChange(record, stream.label));
      const buckets = changes.filter((change): change is BucketChange => change.kind === 'bucket');
      expect(changes.filter(({ kind }) => kind === 'poison')).toEqual([]);
      expect(buckets.length).toBeGreaterThan(5);
      expect(buckets.some(({ after }) => [...(after?.consumedMilli.values() ?? [])].some((milli) => milli > 0))).toBe(
        true,
      );
      expect(foldUsage(buckets)).toEqual([]);

      const hasOwnLimits = (key: string): boolean => legacy.configs.has(`${key.split(' ')[0]} _default_`);
      const taken = [...legacy.left].find(([key, milli]) => milli > 5_000n && !hasOwnLimits(key))?.[0] ?? '';
      const [entityId = '', resource = '', limit = ''] = taken.split(' ');
      await using limiter = await RateLimiter.open(createDynamoDBBackend({ table: table.name, ...world.reach }), {
        clock: fakeClock(legacy.nowMs),
      });
      await limiter.acquire({ entityId, resource, consume: { [limit]: 2 } });
      const tools = batchTools(table);
      expect(await processBatch(tools, stream.label, await readRecords(stream))).toMatchObject({
        failures: [],
        poison: 0,
      });
      const { items } = await limiter.usage.query({
        entityId,
        resource,
        window: 'monthly',
        from: new Date(0),
        to: new Date(legacy.nowMs + 1),
      });
      expect(items).toMatchObject([{ tokens: { [limit]: 2 }, acquires: 1 }]);
      stream.close();
    },
  );
});
