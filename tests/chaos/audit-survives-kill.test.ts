import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ALL_STEPS, runSteps, stepsDone } from '../support/processes/audit-script.js';
import { checkIntegrity, readAllRows, type Row } from '../support/file/file-rows.js';
import { ended, forkable } from '../support/processes/fork-bundled.js';
import { contradictions } from './state-against-audit.js';

const folder = mkdtempSync(join(tmpdir(), 'headgate-audit-'));
/** Concurrent children. They spend most of their time on the start. */
const AT_ONCE = 3;
let start: Awaited<ReturnType<typeof forkable>>;

beforeAll(async () => {
  start = await forkable(new URL('./audit-child.ts', import.meta.url));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Rows = Record<string, Row[]>;

/** The rows that a killed process left. An empty file counts as no file. */
async function rowsLeft(path: string): Promise<Rows> {
  return existsSync(path) && statSync(path).size > 0 ? readAllRows(path) : {};
}

function done(rows: Rows): number {
  return stepsDone((rows['audit'] ?? []).map(({ at }) => Number(at)));
}

/**
 * The rows without random values: the ids of audit records, and the ids of namespaces, which become name and creation
 * time.
 */
function comparable(rows: Rows): unknown {
  const { clock: _, ...recorded } = rows;
  let text = JSON.stringify({ ...recorded, audit: rows['audit']?.map((row) => ({ ...row, id: null })) });
  for (const { id, name, created_at: at } of rows['namespaces'] ?? [])
    text = text.replaceAll(String(id), `${name} of ${at}`);
  const tables = Object.entries(JSON.parse(text) as Rows);
  return tables.map(([table, all]) => [table, all.map((row) => JSON.stringify(row)).toSorted()]);
}

/** Runs the script until right before its n-th statement. Returns how many of its changes were made. */
async function killedBefore(statement: number, expected: unknown): Promise<number | 'survived'> {
  const path = join(folder, `${statement}.db`);
  const exit = await ended(start(path, String(statement)));
  if (exit === 0) return 'survived';
  expect(exit).toBe('SIGKILL');
  const rows = await rowsLeft(path);
  expect(contradictions(rows), `killed before statement ${statement}`).toEqual([]);
  const made = done(rows);
  await runSteps(path, made);
  const after = await readAllRows(path);
  expect(contradictions(after), `continued after statement ${statement}`).toEqual([]);
  expect(comparable(after), `continued after statement ${statement}`).toEqual(expected);
  expect(await checkIntegrity(path)).toBe('ok');
  for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true });
  return made;
}

/** A copy of the rows in which one row of a table is changed or removed. */
function spoiled(rows: Rows, table: string, which: Row, change: Row | null): Rows {
  const isIt = (row: Row): boolean => Object.entries(which).every(([column, value]) => row[column] === value);
  const kept = rows[table]!.flatMap((row) => (isIt(row) ? (change === null ? [] : [{ ...row, ...change }]) : [row]));
  return { ...rows, [table]: kept };
}

test('a change without an audit record, and an audit record without a change, are found', async () => {
  const path = join(folder, 'spoiled.db');
  await runSteps(path, 0);
  const rows = await readAllRows(path);
  expect(contradictions(rows)).toEqual([]);
  const { id: acme } = rows['namespaces']!.find(({ name }) => name === 'acme')!;
  const plans: [table: string, which: Row, change: Row | null][] = [
    ...rows['audit']!.map(({ ns, id }): [string, Row, null] => ['audit', { ns: ns!, id: id! }, null]),
    ['entities', { id: 'proj' }, null],
    ['entities', { id: 'a' }, { version: 2 }],
    ['configs', { ns: acme!, kind: 'system' }, { on_unavailable: 'allow' }],
    ['configs', { ns: acme! }, { ns: 'missing' }],
    ['buckets', { ns: acme! }, null],
    ['namespaces', { name: 'acme' }, { status: 'active' }],
    ['namespaces', { name: 'beta', status: 'purging' }, { status: 'deleted' }],
    ['namespaces', { name: 'default' }, { sequence: 0 }],
  ];
  for (const plan of plans) expect(contradictions(spoiled(rows, ...plan)), JSON.stringify(plan)).not.toEqual([]);
});

test(
  'every change has its audit record, and every record its change, before whichever statement the process is killed',
  { timeout: 240_000 },
  async () => {
    const whole = join(folder, 'whole.db');
    await runSteps(whole, 0);
    const rows = await readAllRows(whole);
    expect([contradictions(rows), done(rows)]).toEqual([[], ALL_STEPS]);
    const expected = comparable(rows);

    const startMs = performance.now();
    const progress = new Map<number, number>();
    let next = 1;
    let survived = Number.POSITIVE_INFINITY;
    const work = async (): Promise<void> => {
      while (next < survived) {
        const statement = next++;
        const made = await killedBefore(statement, expected);
        if (made === 'survived') survived = Math.min(survived, statement);
        else progress.set(statement, made);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));

    const steps = [...progress].toSorted(([a], [b]) => a - b).map(([, made]) => made);
    expect(steps).toHaveLength(survived - 1);
    // A later kill finds at least as many changes as an earlier one. Only the last change is never found, because no
    // statement follows it.
    expect(steps).toEqual(steps.toSorted((a, b) => a - b));
    expect(new Set(steps)).toEqual(new Set(Array.from({ length: ALL_STEPS }, (_, step) => step)));
    const seconds = ((performance.now() - startMs) / 1_000).toFixed(1);
    console.log(`audit: killed before each of ${survived - 1} statements of ${ALL_STEPS} changes, in ${seconds} s`);
  },
);
