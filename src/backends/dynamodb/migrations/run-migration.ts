import type { Table } from '../client/requests.js';
import {
  FRESH,
  type MigrationState,
  type Phase,
  PHASES,
  readPass,
  readMigrationState,
  writePass,
  writeMigrationState,
} from './checkpoint.js';
import type { ConversionContext } from './convert/conversion.js';
import { gatherConversions, inWaves } from './convert/gather-conversions.js';
import { runPhase, stillWritten } from './phases.js';
import { scanGroups } from './scan-groups.js';
import { addTally, NOTHING, type Tally } from './tally.js';
import type { Migration } from './registry.js';
import type { OldRecord } from '../schema/old-record.js';

export interface MigrationJob {
  readonly table: Table;
  readonly migration: Migration;
  readonly context: Omit<ConversionContext, 'migration'>;
  /** The config version of this run, by namespace. */
  readonly sequences: Map<string, number>;
  readonly signal?: AbortSignal | undefined;
  /** Called with the number of old records that were processed, summed over all phases. */
  readonly onSeen: (seen: number) => void;
}

export interface MigrationOutcome {
  readonly found: number;
  readonly written: number;
  readonly strict: number;
  readonly left: number;
  readonly problems: Tally['problems'];
}

/** The limit for one run, over all phases. It detects old clients that never stop writing. */
const MAX_PASSES = 8;

/** Copies, verifies, removes. Each phase starts when the previous one has scanned the whole table. */
export async function runMigration(job: MigrationJob): Promise<MigrationOutcome> {
  const { table, migration } = job;
  const stored = await readMigrationState(table, migration.id);
  let state: MigrationState = stored === null || stored.phase === 'done' ? FRESH : stored;
  if (state !== stored) await writeMigrationState(table, migration.id, state);
  let last: Tally = NOTHING;
  for (let passes = 1; state.phase !== 'done'; passes++) {
    last = await runPass(job, state.phase, state.pass);
    state = next(state, last);
    await writeMigrationState(table, migration.id, state);
    if (passes >= MAX_PASSES && last.changed > 0) {
      throw stillWritten(`${last.changed} records changed during their removal`);
    }
  }
  const { found, written, strict } = state;
  return { found, written, strict, left: last.left, problems: last.problems };
}

function next(state: MigrationState, tally: Tally): MigrationState {
  const sums = {
    found: state.phase === 'copy' ? tally.seen : state.found,
    // Counted by the copy phase only, like `found`: a page that is repeated after a crash counts once.
    written: state.phase === 'copy' ? tally.written : state.written,
    strict: state.strict + tally.strict,
  };
  if (state.phase === 'remove' && tally.changed > 0) return { phase: 'remove', pass: state.pass + 1, ...sums };
  const at = PHASES.findIndex((phase) => phase === state.phase);
  return { phase: PHASES[at + 1] ?? 'done', pass: 1, ...sums };
}

async function runPass(job: MigrationJob, phase: Phase, number: number): Promise<Tally> {
  const { table, migration, signal, sequences } = job;
  const context = { ...job.context, migration: migration.id };
  const pass = `${phase} ${number}`;
  const stored = await readPass(table, migration.id, pass);
  if (stored.done) return stored.tally;
  let { tally } = stored;
  const claims = ({ key }: OldRecord): boolean => migration.claims(key, context.namespaces);
  const treating = { table, phase, context, sequences, signal };
  for await (const { groups, after, done } of scanGroups(table, migration.filter, stored.after, claims, signal)) {
    const { conversions, postponed } = await gatherConversions(table, context, groups, signal);
    for (const wave of inWaves(conversions)) tally = addTally(tally, await runPhase(treating, wave));
    tally = addTally(tally, { ...NOTHING, seen: postponed, changed: postponed });
    job.onSeen(groups.reduce((sum, group) => sum + group.length, 0));
    // Written after the work. A run that is killed in between repeats the page, which changes nothing.
    await writePass(table, migration.id, pass, { after, done, tally });
  }
  return tally;
}
