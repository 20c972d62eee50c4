import pc from 'picocolors';
import { expect, test } from 'vitest';
import { describeMigration, drawProgress, renderMigration } from './migrate.js';
import type { MigrateShape } from './migrate.js';

const PLAIN = pc.createColors(false);
const DONE: MigrateShape = {
  from: 0,
  to: 2,
  raisesTo: null,
  dryRun: false,
  migrations: [
    {
      id: '0003',
      title: 'buckets',
      found: 9_162,
      written: 4_668,
      removed: 9_139,
      strict: 2,
      left: 23,
      problems: [{ record: 'ENTITY#a\u001B[2J #META', reason: 'it is strange' }],
    },
  ],
  indexes: [{ index: 'GSI2', state: 'costly', advice: 'replace it' }],
  settings: [{ setting: 'cascade', records: 1_200, treatment: 'refused', effect: 'that of the entity applies' }],
};

test('the report of a migration has the counts, the records that are left, and the advice', () => {
  expect(renderMigration(DONE, PLAIN)).toBe(
    [
      'migrated in part from layout 0 to 2',
      'MIGRATION  FOUND  WRITTEN  REMOVED  STRICT  LEFT',
      '0003       9,162    4,668    9,139       2    23  buckets',
      '  left: ENTITY#a\\u001b[2J #META: it is strange',
      '  23 records are left in all',
      'cascade: 1,200 records, refused unless --drop cascade: that of the entity applies',
      'index GSI2 makes takes more expensive: replace it',
    ].join('\n'),
  );
});

test('the report of a migration distinguishes a dry run, a real run, and no changes', () => {
  const all = DONE.migrations.map((migration) => ({ ...migration, left: 0, problems: [] }));
  expect(renderMigration({ ...DONE, migrations: all }, PLAIN)).toMatch(/^migrated from layout 0 to 2\n/);
  expect(renderMigration({ ...DONE, dryRun: true }, PLAIN)).toMatch(/^dry run: nothing was written\n/);
  const nothing = { ...DONE, migrations: [], indexes: [], settings: [] };
  expect(renderMigration({ ...nothing, from: 2, to: 2 }, PLAIN)).toBe('No changes: the table has layout 2.');
  expect(renderMigration({ ...nothing, from: 1, to: 2, raisesTo: 2 }, PLAIN)).toBe('raised from layout 1 to 2');
  const ahead = 'dry run: the table has layout 1, a run raises it to 2';
  expect(renderMigration({ ...nothing, from: 1, to: 1, raisesTo: 2, dryRun: true }, PLAIN)).toBe(ahead);
  expect(renderMigration(nothing, PLAIN)).toBe('No records of an older layout.');
});

test('the question before a migration names what it moves, and which clients it refuses', () => {
  const raise = 'raises table t from layout 1 to 2: clients of an older Headgate are refused within two minutes';
  const move = 'moves 9,139 old records of table t and removes them: clients of the old version must not run any more';
  expect(describeMigration('table t', DONE)).toBe(move);
  expect(describeMigration('table t', { ...DONE, from: 1, raisesTo: 2, migrations: [] })).toBe(raise);
  expect(describeMigration('table t', { ...DONE, from: 1, raisesTo: 2 })).toBe(`${move}; and ${raise}`);
  const onlyLeft = DONE.migrations.map((migration) => ({ ...migration, found: migration.left }));
  expect(describeMigration('table t', { from: 1, raisesTo: 2, migrations: onlyLeft })).toBe(raise);
});

test.each([
  [0, '[                        ] 0 %'],
  [199, '[===========             ] 49 %'],
  [400, '[========================] 100 %'],
])('the progress bar after %s of 400 records', (done, drawn) => {
  expect(drawProgress({ migration: '0001', done, total: 400 })).toBe(`migration 0001 ${drawn}`);
});

test('the progress of a migration with an unknown total has no bar', () => {
  expect(drawProgress({ migration: '0001', done: 1_200, total: null })).toBe('migration 0001: 1,200 records');
});
