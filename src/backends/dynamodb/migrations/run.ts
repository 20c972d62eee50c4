import { registerNamespace } from '../table/create-table.js';
import { deadlineIn } from '../client/deadline.js';
import { buildNamespaceKey } from '../table/keys.js';
import { readItem, type Table } from '../client/requests.js';
import { beginMigration, finishMigration, readVersion, SCHEMA_VERSION } from '../table/schema.js';
import { type LoadSdk, type SdkOptions, sdkTransport } from '../client/sdk-transport.js';
import { readState } from './checkpoint.js';
import type { ConversionContext } from './convert/build-conversions.js';
import { countChildren } from './convert/children.js';
import { findTargetNamespaces } from './legacy/target-namespaces.js';
import { type IndexFinding, inspectIndexes, refuseMissing } from './indexes.js';
import { withRetries, REQUEST_MS } from './retry.js';
import { stillWritten } from './phases.js';
import { refuseOldClients } from './refuse-old-clients.js';
import { checkDrop, reportSettings, refuseUnmovable, type SettingReport } from './refuse-unmovable.js';
import { MIGRATIONS } from './registry.js';
import { type MigrationOutcome, runMigration } from './run-migration.js';
import type { DroppableSetting } from './legacy/settings.js';
import { countOld, foundBy, rehearse, surveyTable } from './survey.js';
import { tableNameOf } from '../table/table-name.js';
import type { Problem } from './tally.js';
import type { Migration } from './convert/conversion.js';

export interface MigrateOptions extends SdkOptions {
  readonly tableName: string;
  /** Reads only, and says what there is to do. */
  readonly dryRun?: boolean;
  /** Converts the rest where some records cannot be: those stay as they are, and no client interprets them. */
  readonly leave?: boolean;
  /** Settings without a counterpart that are given up. */
  readonly drop?: readonly DroppableSetting[];
  /** Stops between two pages; what was done stands, and the next run goes on from there. */
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
  /** The number of the table's layout before and after: 0 is any that was published before there were numbers. */
  readonly from: number;
  readonly to: number;
  readonly dryRun: boolean;
  /** Those that had something to do. */
  readonly migrations: readonly MigrationResult[];
  /** Indexes that are not as this version makes them. */
  readonly indexes: readonly IndexFinding[];
  /** Settings of old records that this version does not have. */
  readonly settings: readonly SettingReport[];
}

export interface MigrationResult {
  readonly id: string;
  readonly title: string;
  /** Old records. */
  readonly found: number;
  /** New records that stand for the old ones, by all runs together; in a dry run 0. */
  readonly written: number;
  /** Old records that are gone. */
  readonly removed: number;
  /** Buckets that were in use here already: they lose what the old ones lacked. */
  readonly strict: number;
  /** Old records that have no counterpart, and stay. */
  readonly left: number;
  /** The first of those, and why. */
  readonly problems: readonly Problem[];
}

/** Every phase looks at every record. */
const LOOKS = 3;

/** Brings a table of an older layout to the one that this code reads and writes. May be killed, and run again. */
export async function runMigrations(options: MigrateOptions, load?: LoadSdk): Promise<MigrationReport> {
  const name = tableNameOf(options, 'tableName');
  checkDrop(options.drop);
  const { region, endpoint } = options;
  const transport = sdkTransport(options, load);
  try {
    return await migrate({ name, transport, random: Math.random, address: { region, endpoint } }, options);
  } finally {
    transport.close();
  }
}

async function migrate(table: Table, options: MigrateOptions): Promise<MigrationReport> {
  const { dryRun = false, signal } = options;
  const from = (await readVersion(table, deadlineIn(REQUEST_MS))) ?? 0;
  // A table that is ready is looked at, too: a client that was opened before may have written to it since.
  const isReady = from >= SCHEMA_VERSION;
  const survey = await surveyTable(table, signal);
  const around = {
    homes: await findTargetNamespaces(table, survey, false),
    disabled: survey.disabled,
    drop: new Set(options.drop),
  };
  const migrations = await toRun(table, foundBy(survey, around.homes));
  const indexes = isReady && migrations.length === 0 ? [] : await inspectIndexes(table);
  const settings = reportSettings(survey.settings, around.drop);
  const rehearsed = await rehearseAll(table, migrations, around, signal);
  if (dryRun) return { from, to: from, dryRun, migrations: rehearsed, indexes, settings };
  refuseMissing(table.name, indexes);
  if (options.leave !== true) refuseUnmovable(table, rehearsed, settings);
  const toDo = await withWork(table, migrations, rehearsed);
  if (isReady && toDo.length === 0) return { from, to: from, dryRun, migrations: rehearsed, indexes, settings };

  await beginMigration(table, deadlineIn(REQUEST_MS));
  await refuseOldClients(table, survey);
  const moving = { ...around, homes: await findTargetNamespaces(table, survey, true) };
  const outcomes = await runAll(table, toDo, rehearsed, moving, options);
  const left = new Map(rehearsed.map(({ id, left: count }) => [id, outcomes.get(id)?.left ?? count]));
  await refuseLeftovers(table, moving, left, signal);
  await countChildren(table, signal);
  // A table that was never used is made ready as a new one is.
  if (migrations.length === 0 && (await readDefault(table)) === undefined) await registerNamespace(table);
  await finishMigration(table, deadlineIn(REQUEST_MS));
  const results = rehearsed.map((result) => resultOf(result, outcomes.get(result.id)));
  return { from, to: SCHEMA_VERSION, dryRun, migrations: results, indexes, settings };
}

/** Also those that were killed after their last record was gone. */
async function toRun(table: Table, found: ReadonlyMap<string, number>): Promise<readonly Migration[]> {
  const states = await Promise.all(MIGRATIONS.map(async ({ id }) => readState(table, id)));
  return MIGRATIONS.filter(({ id }, at) => {
    const phase = states[at]?.phase ?? 'done';
    return (found.get(id) ?? 0) > 0 || phase !== 'done';
  });
}

/** Where everything that is found has to stay, a run would change nothing but its own notes. */
async function withWork(
  table: Table,
  migrations: readonly Migration[],
  rehearsed: readonly MigrationResult[],
): Promise<readonly Migration[]> {
  const states = await Promise.all(migrations.map(async ({ id }) => readState(table, id)));
  return migrations.filter((_, at) => {
    const { found = 0, left = 0 } = rehearsed[at] ?? {};
    return found > left || (states[at]?.phase ?? 'done') !== 'done';
  });
}

async function rehearseAll(
  table: Table,
  migrations: readonly Migration[],
  around: Omit<ConversionContext, 'migration'>,
  signal: AbortSignal | undefined,
): Promise<readonly MigrationResult[]> {
  const results: MigrationResult[] = [];
  for (const migration of migrations) {
    const { id, title } = migration;
    const { seen, strict, left, problems } = await rehearse(table, migration, { ...around, migration: id }, signal);
    results.push({ id, title, found: seen, written: 0, removed: 0, strict, left, problems });
  }
  return results;
}

async function runAll(
  table: Table,
  migrations: readonly Migration[],
  rehearsed: readonly MigrationResult[],
  around: Omit<ConversionContext, 'migration'>,
  { signal, onProgress }: MigrateOptions,
): Promise<ReadonlyMap<string, MigrationOutcome>> {
  const outcomes = new Map<string, MigrationOutcome>();
  const sequences = new Map<string, number>();
  for (const migration of migrations) {
    const { id } = migration;
    const total = LOOKS * (rehearsed.find((result) => result.id === id)?.found ?? 0);
    let done = 0;
    const onSeen = (seen: number): void => {
      done = Math.min(total, done + seen);
      onProgress?.({ migration: id, done, total });
    };
    outcomes.set(id, await runMigration({ table, migration, around, sequences, signal, onSeen }));
  }
  return outcomes;
}

/** The version moves only if nothing is left but what the report names. */
async function refuseLeftovers(
  table: Table,
  { homes }: Pick<ConversionContext, 'homes'>,
  left: ReadonlyMap<string, number>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const found = await countOld(table, homes, signal);
  for (const { id, title } of MIGRATIONS) {
    const more = (found.get(id) ?? 0) - (left.get(id) ?? 0);
    if (more > 0) throw stillWritten(`${more} more of migration ${id} (${title}) have come`);
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
