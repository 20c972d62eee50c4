import type { ChildProcess } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type MigrationReport, runMigrations } from '../../../src/backends/dynamodb/migrations/run.js';
import { Random } from '../../../src/testing/conformance/kit/random.js';
import { ENGINE } from '../dynamodb/world.js';
import { ended, forkable } from '../processes/fork-bundled.js';
import { expectMigrated } from './legacy-checks.js';
import { LAYOUTS, legacyTable } from './legacy-tables.js';
import { LegacyWorld } from './legacy-world.js';

/** The migration with the most work for each layout. */
const MIGRATION = { 'per-limit': '0003', composite: '0002', 'v0.9': '0001', literal: '0004' } as const;
/**
 * A run is killed in each phase, at one of this many requests. Some migrations have few requests in the first two
 * phases.
 */
const killsOf = (items: number) =>
  [
    ['copy', Math.floor(items / 80)],
    ['verify', Math.floor(items / 80)],
    ['remove', Math.floor(items / 42)],
  ] as const;

/** Tests with tables of this many records, of each layout. */
export function describeMigrationKilled(records: number): void {
  describe.skipIf(ENGINE.missing)(`a migration of ${records} records that is killed${ENGINE.note}`, () => {
    let world: LegacyWorld;
    let fork: (...args: readonly string[]) => ChildProcess;

    beforeAll(async () => {
      fork = await forkable(new URL('./child.ts', import.meta.url));
      world = await LegacyWorld.start();
    });
    afterAll(async () => world?.stop());

    const migrate = async (tableName: string): Promise<MigrationReport> => runMigrations({ tableName, ...world.reach });
    /** Every item as text, which is faster to compare for thousands of items. */
    const dump = async (table: string): Promise<string> => {
      const items = await world.dump(table);
      return items
        .map((item) => JSON.stringify(Object.entries(item).toSorted(([a], [b]) => (a < b ? -1 : 1))))
        .join('\n');
    };

    test.each(LAYOUTS)(
      'a table of layout %s is complete and unchanged in meaning after a migration that was killed in each phase and run again',
      async (layout) => {
        const seed = LAYOUTS.indexOf(layout) + 1;
        const random = new Random(seed);
        const legacy = legacyTable(layout, records, seed);
        const table = await world.table(legacy.items);
        for (const [phase, requests] of killsOf(records)) {
          const killAt = String(random.whole(1, requests));
          const { endpoint, region } = world.reach;
          const child = fork(table.name, endpoint, region, MIGRATION[layout], phase, killAt);
          expect(await ended(child)).toBe('SIGKILL');
        }
        const report = await migrate(table.name);
        expect(report).toMatchObject({ from: 0, to: 2, dryRun: false, indexes: [] });
        expect(report.migrations.length).toBeGreaterThan(0);
        for (const { found, removed, left, strict } of report.migrations) {
          expect({ removed, left, strict }).toEqual({ removed: found, left: 0, strict: 0 });
        }
        await expectMigrated(world, table.name, legacy);

        const before = await dump(table.name);
        expect(await migrate(table.name)).toMatchObject({ from: 2, to: 2, migrations: [] });
        expect(await dump(table.name)).toBe(before);
        // Also not after the loss of the version record.
        await world.put(table.name, [{ PK: { S: '_/SYSTEM#' }, SK: { S: '#VERSION' } }]);
        expect(await migrate(table.name)).toMatchObject({ from: 0, to: 2, migrations: [] });
        expect(await dump(table.name)).toBe(before);
      },
      300_000,
    );
  });
}
