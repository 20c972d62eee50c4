import type { Table } from '../requests.js';
import {
  FRESH,
  type MigrationState,
  type Phase,
  PHASES,
  readSegment,
  readState,
  writeSegment,
  writeState,
} from './checkpoint.js';
import { gatherUnits } from './gather-units.js';
import { stillWritten, treatUnits } from './phases.js';
import { scanGroups, SEGMENTS } from './scan.js';
import { addTally, NOTHING, type Tally } from './tally.js';
import type { Migration } from './unit.js';

export interface MigrationJob {
  readonly table: Table;
  readonly migration: Migration;
  readonly defaultNs: string;
  readonly signal?: AbortSignal | undefined;
  /** Hears how many old records were looked at in all phases so far. */
  readonly onSeen: (seen: number) => void;
}

export interface MigrationOutcome {
  readonly found: number;
  readonly written: number;
  readonly strict: number;
  readonly left: number;
  readonly problems: Tally['problems'];
}

/** Old clients that write between two passes are found out; those that never stop, too. */
const MOST_PASSES = 5;
/** Units that are read, planned and written together. */
const BATCH = 100;

/** Copies, verifies, removes: each phase begins when the one before has gone through the whole table. */
export async function runMigration(job: MigrationJob): Promise<MigrationOutcome> {
  const { table, migration } = job;
  const stored = await readState(table, migration.id);
  let state: MigrationState = stored === null || stored.phase === 'done' ? FRESH : stored;
  if (state !== stored) await writeState(table, migration.id, state);
  let last: Tally = NOTHING;
  while (state.phase !== 'done') {
    last = await runPass(job, state.phase, state.pass);
    state = next(state, last);
    await writeState(table, migration.id, state);
  }
  const { found, written, strict } = state;
  return { found, written, strict, left: last.left, problems: last.problems };
}

function next(state: MigrationState, tally: Tally): MigrationState {
  const sums = {
    found: state.phase === 'copy' ? tally.seen : state.found,
    written: state.written + tally.written,
    strict: state.strict + tally.strict,
  };
  if (state.phase === 'remove' && tally.changed > 0) {
    if (state.pass >= MOST_PASSES) throw stillWritten(`${tally.changed} records changed while they were to be removed`);
    return { phase: 'remove', pass: state.pass + 1, ...sums };
  }
  const at = PHASES.findIndex((phase) => phase === state.phase);
  return { phase: PHASES[at + 1] ?? 'done', pass: 1, ...sums };
}

async function runPass(job: MigrationJob, phase: Phase, pass: number): Promise<Tally> {
  const sequences = new Set<string>();
  const segments = Array.from({ length: SEGMENTS }, (_, segment) => segment);
  const tallies = await Promise.all(
    segments.map(async (segment) => runSegment(job, phase, `${phase} ${pass}`, segment, sequences)),
  );
  return tallies.reduce(addTally, NOTHING);
}

async function runSegment(
  job: MigrationJob,
  phase: Phase,
  pass: string,
  segment: number,
  sequences: Set<string>,
): Promise<Tally> {
  const { table, migration, signal, defaultNs } = job;
  const around = { migration: migration.id, defaultNs };
  const stored = await readSegment(table, migration.id, segment, pass);
  if (stored.done) return stored.tally;
  let { tally } = stored;
  const claims = migration.claims.bind(migration);
  for await (const { groups, after, done } of scanGroups(table, segment, stored.after, claims, signal)) {
    const units = await gatherUnits(table, around, groups, signal);
    for (let at = 0; at < units.length; at += BATCH) {
      const batch = units.slice(at, at + BATCH);
      tally = addTally(tally, await treatUnits({ table, phase, sequences, signal }, batch));
    }
    job.onSeen(groups.reduce((sum, group) => sum + group.length, 0));
    // Written after the work, so that whoever is killed between the two does that page once more, which changes nothing.
    await writeSegment(table, migration.id, segment, pass, { after, done, tally });
  }
  return tally;
}
