import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { LEASE_FEATURES } from '../support/features/lease-features.js';
import { LEASE_PATHS } from '../support/features/lease-paths.js';
import { type Feature, FEATURES, hasPath, type Path, PATHS } from '../support/features/matrix.js';
import { ROWS } from '../support/features/pause-rows.js';
import { PORTABLE_LOSSES, PORTABLE_PATHS } from '../support/features/portable-paths.js';
import { WRITE_PATHS } from '../support/features/write-paths.js';

const STORES = ['memory', 'file', 'dynamodb'] as const;

/** One case of a table. `only`: the store that it runs on; left out: every store that has the path. */
interface Case {
  readonly path: Path;
  readonly only?: (typeof STORES)[number];
}

/** The features whose subject may be slots. Those of priorities are tested with the reserves of the rate. */
const OF_SLOTS: readonly Feature[] = ['shadow', 'bypass', 'atMost', 'near'];
const SLOTS_FILE = 'slots-of-features.test.ts';

/** Whether a test runs all shared write paths for the feature. */
function usesWritePaths(feature: Feature, isIn = (name: string): boolean => name !== SLOTS_FILE): boolean {
  const folder = new URL('.', import.meta.url);
  const files = readdirSync(folder).filter((name) => name.endsWith('.test.ts') && name !== 'matrix.test.ts');
  return files
    .filter(isIn)
    .some((name) => readFileSync(new URL(name, folder), 'utf8').includes(`test.each(cellsOf('${feature}'))`));
}

/** The cases in which the path comes before the feature, or while it lasts. */
function casesOf(feature: Feature): readonly Case[] {
  if (feature === 'pause') return ROWS;
  if (feature === 'portable') return [...PORTABLE_PATHS, ...PORTABLE_LOSSES];
  return usesWritePaths(feature) ? WRITE_PATHS : [];
}

/** The cases in which a lease of the feature comes first. The tables of pauses and portable leases have no others. */
function leaseCasesOf(feature: Feature): readonly Case[] {
  if (feature === 'pause' || feature === 'portable') return casesOf(feature);
  return LEASE_FEATURES.filter((one) => one.feature === feature).flatMap(() => LEASE_PATHS);
}

/** The number of cases of a cell on each store: `memory/file/dynamodb`. */
function cell(cases: readonly Case[], path: Path): string {
  const onPath = cases.filter((one) => one.path === path);
  const counts = STORES.map((store) => {
    if (!hasPath(store, path)) return '-';
    return onPath.filter(({ only }) => only === undefined || only === store).length;
  });
  return counts.join('/');
}

function tableOf(casesFor: (feature: Feature) => readonly Case[]): string {
  const rows = [['', ...PATHS], ...FEATURES.map((one) => [one, ...PATHS.map((path) => cell(casesFor(one), path))])];
  return rows
    .map((row) =>
      row
        .map((text) => text.padEnd(9))
        .join('')
        .trimEnd(),
    )
    .join('\n');
}

test('every feature has a case for every write path, on every store that has the path', () => {
  expect(tableOf(casesOf)).not.toMatch(/(^|[ /])0/m);
  expect(tableOf(casesOf)).toMatchInlineSnapshot(`
    "         take     full     settle   refund   extend   reclaim  split    merge    reset    rebase   ttl      eviction
    pause    5/5/6    1/1/1    1/1/1    4/4/4    1/1/1    2/2/3    -/-/1    -/-/1    1/1/1    1/1/1    1/1/1    1/1/-
    priority 1/1/1    1/1/1    2/2/2    2/2/2    1/1/1    1/1/1    -/-/1    -/-/1    1/1/1    1/1/1    2/2/2    1/1/-
    shadow   1/1/1    1/1/1    2/2/2    2/2/2    1/1/1    1/1/1    -/-/1    -/-/1    1/1/1    1/1/1    2/2/2    1/1/-
    bypass   1/1/1    1/1/1    2/2/2    2/2/2    1/1/1    1/1/1    -/-/1    -/-/1    1/1/1    1/1/1    2/2/2    1/1/-
    atMost   1/1/1    1/1/1    2/2/2    2/2/2    1/1/1    1/1/1    -/-/1    -/-/1    1/1/1    1/1/1    2/2/2    1/1/-
    near     1/1/1    1/1/1    2/2/2    2/2/2    1/1/1    1/1/1    -/-/1    -/-/1    1/1/1    1/1/1    2/2/2    1/1/-
    charge   1/1/1    1/1/1    2/2/2    2/2/2    1/1/1    1/1/1    -/-/1    -/-/1    1/1/1    1/1/1    2/2/2    1/1/-
    portable 1/1/1    1/1/1    1/1/1    1/1/1    1/1/1    3/3/3    -/-/1    -/-/1    1/1/1    1/1/1    1/1/1    1/1/-"
  `);
});

test('every feature that slots may have runs every write path with slots as its subject', () => {
  expect(OF_SLOTS.filter((feature) => !usesWritePaths(feature, (name) => name === SLOTS_FILE))).toEqual([]);
});

test('every feature has a case in which its own lease comes before the write path', () => {
  expect(tableOf(leaseCasesOf)).not.toMatch(/(^|[ /])0/m);
  expect(tableOf(leaseCasesOf)).toMatchInlineSnapshot(`
    "         take     full     settle   refund   extend   reclaim  split    merge    reset    rebase   ttl      eviction
    pause    5/5/6    1/1/1    1/1/1    4/4/4    1/1/1    2/2/3    -/-/1    -/-/1    1/1/1    1/1/1    1/1/1    1/1/-
    priority 2/2/2    2/2/2    2/2/2    6/6/6    2/2/2    4/4/4    -/-/2    -/-/2    2/2/2    2/2/2    2/2/2    2/2/-
    shadow   4/4/4    4/4/4    4/4/4    12/12/12 4/4/4    8/8/8    -/-/4    -/-/4    4/4/4    4/4/4    4/4/4    4/4/-
    bypass   2/2/2    2/2/2    2/2/2    6/6/6    2/2/2    4/4/4    -/-/2    -/-/2    2/2/2    2/2/2    2/2/2    2/2/-
    atMost   2/2/2    2/2/2    2/2/2    6/6/6    2/2/2    4/4/4    -/-/2    -/-/2    2/2/2    2/2/2    2/2/2    2/2/-
    near     1/1/1    1/1/1    1/1/1    3/3/3    1/1/1    2/2/2    -/-/1    -/-/1    1/1/1    1/1/1    1/1/1    1/1/-
    charge   1/1/1    1/1/1    1/1/1    3/3/3    1/1/1    2/2/2    -/-/1    -/-/1    1/1/1    1/1/1    1/1/1    1/1/-
    portable 1/1/1    1/1/1    1/1/1    1/1/1    1/1/1    3/3/3    -/-/1    -/-/1    1/1/1    1/1/1    1/1/1    1/1/-"
  `);
});
