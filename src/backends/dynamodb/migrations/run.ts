import { registerNamespace } from '../schema/create-table.js';
import { deadlineIn } from '../../../machine-time.js';
import { buildNamespaceKey } from '../table/keys.js';
import { REQUEST_MS, readItem, type Table } from '../client/requests.js';
import { beginMigration, finishMigration, raiseVersion, readVersion } from '../schema/schema.js';
import { OLDEST_VERSION, SCHEMA_VERSION } from '../schema/schema-version.js';
import { openTransport } from '../client/open-transport.js';
import type { LoadSdk, SdkOptions } from '../client/sdk-transport.js';
import { readMigrationState } from './checkpoint.js';
import type { ConversionContext } from './convert/conversion.js';
import { countChildren } from './convert/children.js';
import { writeEntitySettings } from './convert/entity-settings.js';
import { findTargetNamespaces } from './legacy/target-namespaces.js';
import { type IndexFinding, refuseMissing } from './index-findings.js';
import { inspectIndexes } from './indexes.js';
import { withRetries } from '../schema/retry.js';
import { stillWritten } from './phases.js';
import { refuseOldClients } from './refuse-old-clients.js';
import { checkDrop, refuseUnmovable, reportSettings, type SettingReport } from './refuse-unmovable.js';
import { type Migration, MIGRATIONS } from './registry.js';
import { type MigrationOutcome, runMigration } from './run-migration.js';
import type { DroppableSetting } from './legacy/settings.js';
import { countOld, foundBy, rehearse, surveyTable } from './survey.js';
import { tableNameOf } from '../table/table-name.js';
import type { MigrationProblem } from './tally.js';

export interface MigrateOptions extends SdkOptions {
  readonly tableName: string;
  /** Reads only, and reports what a run would do. */
  readonly dryRun?: boolean;
  /**
   * Converts the other records when some cannot be converted. Those stay as they are, and no client interprets them.
   */
  readonly leave?: boolean;
  /** false: a table with a numbered layout keeps its number. Older clients can then still use it. */
  readonly raise?: boolean;
  /** Settings without a counterpart that the operator drops. */
  readonly drop?: readonly DroppableSetting[];
  /** Stops between two pages. The finished pages stay converted, and the next run continues there. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: MigrationProgress) => void;
}

export interface MigrationProgress {
  readonly migration: string;
  readonly done: number;
  /** null: not known yet. */
  readonly total: number | null;
}

export interface MigrationReport {
  /** The number of the table's layout before and after. 0 is any layout without a number. */
  readonly from: number;
  readonly to: number;
  /** The layout to which a run raises the table without converting records; null: no such layout. */
  readonly raisesTo: number | null;
  readonly dryRun: boolean;
  /** The migrations that found old records. */
  readonly migrations: readonly MigrationResult[];
  /** Indexes that differ from this version's. */
  readonly indexes: readonly IndexFinding[];
  /** Settings of old records that this version does not have. */
  readonly settings: readonly SettingReport[];
}

export interface MigrationResult {
  readonly id: string;
  readonly title: string;
  /** Old records. */
  readonly found: number;
  /** New records that replace old ones, over all runs; 0 in a dry run. */
  readonly written: number;
  /** Old records that were removed. */
  readonly removed: number;
  /** Buckets that clients of this version used already. They lose what the old ones lacked. */
  readonly strict: number;
  /** Old records without a counterpart. They stay. */
  readonly left: number;
  /** The first of those, with the reasons. */
  readonly problems: readonly MigrationProblem[];
}

/** Whether a run changes the table, by the report of a dry run. Records that stay as they are change nothing. */
export function changesTable({ from, raisesTo, migrations }: MigrationReport): boolean {
  const isReady = from >= OLDEST_VERSION;
  return raisesTo !== null || migrations.some(({ found, left }) => !isReady || found > left);
}

/** Every phase reads every record. */
const READS_PER_RECORD = 3;

/** Migrates a table of an older layout to the one that this code reads and writes. May be killed and run again. */
export async function runMigrations(options: MigrateOptions, load?: LoadSdk): Promise<MigrationReport> {
  const name = tableNameOf(options, 'tableName');
  checkDrop(options.drop);
  const { region, endpoint } = options;
  const transport = openTransport(options, load);
  try {
    return await migrate({ name, transport, random: Math.random, address: { region, endpoint } }, options);
  } finally {
    transport.close();
  }
}

async function migrate(table: Table, options: MigrateOptions): Promise<MigrationReport> {
  const { dryRun = false, raise = true, signal } = options;
  const from = (await readVersion(table, deadlineIn(REQUEST_MS))) ?? 0;
  // A migrated table is scanned too: a client that was opened before the migration may have written to it since.
  const isReady = from >= OLDEST_VERSION;
  const drop = new Set(options.drop);
  const survey = await surveyTable(table, drop, signal);
  const context = {
    namespaces: await findTargetNamespaces(table, survey, false),
    disabled: survey.disabled,
    drop,
  };
  const migrations = await toRun(table, foundBy(survey, context.namespaces));
  const indexes = isReady && migrations.length === 0 ? [] : await inspectIndexes(table);
  const settings = reportSettings(survey.settings, context.drop);
  const rehearsed = await rehearseAll(table, migrations, context, signal);
  const raisesTo = isReady && from < SCHEMA_VERSION ? SCHEMA_VERSION : null;
  const report = { from, raisesTo, dryRun, indexes, settings };
  if (dryRun) return { ...report, to: from, migrations: rehearsed };
  refuseMissing(table.name, indexes);
  const toDo = await withWork(table, migrations, rehearsed);
  const isDone = isReady && toDo.length === 0;
  if (options.leave !== true && !isDone) refuseUnmovable(table, rehearsed, settings);
  const end = async (): Promise<number> => {
    if (!isReady) return SCHEMA_VERSION;
    if (raisesTo === null || !raise) return from;
    await raiseVersion(table, deadlineIn(REQUEST_MS));
    return raisesTo;
  };
  if (isDone) return { ...report, to: await end(), migrations: rehearsed };

  await beginMigration(table, deadlineIn(REQUEST_MS));
  await refuseOldClients(table, survey);
  const moving = { ...context, namespaces: await findTargetNamespaces(table, survey, true) };
  const outcomes = await runAll(table, toDo, rehearsed, moving, options);
  const left = new Map(rehearsed.map(({ id, left: count }) => [id, outcomes.get(id)?.left ?? count]));
  await refuseLeftovers(table, moving, left, signal);
  await writeEntitySettings(table, survey.disabled.entitySettings(moving.namespaces, !isReady), signal);
  await countChildren(table, signal);
  // A table that was never used is prepared like a new one.
  if (migrations.length === 0 && (await readDefault(table)) === undefined) await registerNamespace(table);
  await finishMigration(table, deadlineIn(REQUEST_MS));
  const results = rehearsed.map((result) => resultOf(result, outcomes.get(result.id)));
  return { ...report, to: await end(), migrations: results };
}

/** Includes migrations that were killed after their last record was removed. */
async function toRun(table: Table, found: ReadonlyMap<string, number>): Promise<readonly Migration[]> {
  const states = await Promise.all(MIGRATIONS.map(async ({ id }) => readMigrationState(table, id)));
  return MIGRATIONS.filter(({ id }, at) => {
    const phase = states[at]?.phase ?? 'done';
    return (found.get(id) ?? 0) > 0 || phase !== 'done';
  });
}

/** Leaves out migrations whose records must all stay: a run would change only its checkpoint. */
async function withWork(
  table: Table,
  migrations: readonly Migration[],
  rehearsed: readonly MigrationResult[],
): Promise<readonly Migration[]> {
  const states = await Promise.all(migrations.map(async ({ id }) => readMigrationState(table, id)));
  return migrations.filter((_, at) => {
    const { found = 0, left = 0 } = rehearsed[at] ?? {};
    return found > left || (states[at]?.phase ?? 'done') !== 'done';
  });
}

async function rehearseAll(
  table: Table,
  migrations: readonly Migration[],
  context: Omit<ConversionContext, 'migration'>,
  signal: AbortSignal | undefined,
): Promise<readonly MigrationResult[]> {
  const results: MigrationResult[] = [];
  for (const migration of migrations) {
    const { id, title } = migration;
    const { seen, strict, left, problems } = await rehearse(table, migration, { ...context, migration: id }, signal);
    results.push({ id, title, found: seen, written: 0, removed: 0, strict, left, problems });
  }
  return results;
}

async function runAll(
  table: Table,
  migrations: readonly Migration[],
  rehearsed: readonly MigrationResult[],
  context: Omit<ConversionContext, 'migration'>,
  { signal, onProgress }: MigrateOptions,
): Promise<ReadonlyMap<string, MigrationOutcome>> {
  const outcomes = new Map<string, MigrationOutcome>();
  const sequences = new Map<string, number>();
  for (const migration of migrations) {
    const { id } = migration;
    const total = READS_PER_RECORD * (rehearsed.find((result) => result.id === id)?.found ?? 0);
    let done = 0;
    const onSeen = (seen: number): void => {
      done = Math.min(total, done + seen);
      onProgress?.({ migration: id, done, total });
    };
    outcomes.set(id, await runMigration({ table, migration, context, sequences, signal, onSeen }));
  }
  return outcomes;
}

/** The version changes only when no old records are left except those that the report names. */
async function refuseLeftovers(
  table: Table,
  { namespaces }: Pick<ConversionContext, 'namespaces'>,
  left: ReadonlyMap<string, number>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const found = await countOld(table, namespaces, signal);
  for (const { id, title } of MIGRATIONS) {
    const more = (found.get(id) ?? 0) - (left.get(id) ?? 0);
    if (more > 0) throw stillWritten(`${more} new records of migration ${id} (${title}) appeared`);
  }
}

async function readDefault(table: Table): Promise<string | undefined> {
  const item = await withRetries(async () => readItem(table, buildNamespaceKey('default'), deadlineIn(REQUEST_MS)));
  return item?.['namespace_id']?.S;
}

function resultOf(rehearsed: MigrationResult, outcome: MigrationOutcome | undefined): MigrationResult {
  if (outcome === undefined) return rehearsed;
  const { found, written, strict, left, problems } = outcome;
  return { ...rehearsed, found, written, removed: found - left, strict, left, problems };
}
