import { InfrastructureError, ValidationError } from '../../../core/errors.js';
import { deadlineIn } from '../deadline.js';
import { registerFirstNamespace } from '../create-table.js';
import { buildNamespaceKey } from '../keys.js';
import { readItem, type Table } from '../requests.js';
import { beginMigration, finishMigration, readVersion, SCHEMA_VERSION } from '../schema.js';
import { type LoadSdk, type SdkOptions, sdkTransport } from '../sdk-transport.js';
import { readState } from './checkpoint.js';
import { countChildren } from './children.js';
import { type IndexFinding, inspectIndexes, refuseMissing } from './indexes.js';
import { patiently, REQUEST_MS } from './patience.js';
import { stillWritten } from './phases.js';
import { MIGRATIONS } from './registry.js';
import { refuseOldClients } from './refuse-old-clients.js';
import { type MigrationOutcome, runMigration } from './run-migration.js';
import { rehearse, type Survey, surveyTable } from './survey.js';
import type { Problem } from './tally.js';
import type { Migration } from './unit.js';

export interface MigrateOptions extends SdkOptions {
  readonly tableName: string;
  /** Reads only, and says what there is to do. */
  readonly dryRun?: boolean;
  /** Stops between two pages; what was done stands, and the next run goes on from there. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: MigrationProgress) => void;
}

export interface MigrationProgress {
  readonly migration: string;
  readonly done: number;
  /** null: nobody knows yet. */
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
}

export interface MigrationResult {
  readonly id: string;
  readonly title: string;
  /** Old records. */
  readonly found: number;
  /** New records that were written, by all runs together; in a dry run 0. */
  readonly written: number;
  /** Old records that are gone. */
  readonly removed: number;
  /** Buckets that somebody used already: they lose what the old ones lacked. */
  readonly strict: number;
  /** Old records that have no counterpart, and stay. */
  readonly left: number;
  /** The first of those, and why. */
  readonly problems: readonly Problem[];
}

/** The migration of v0.9, whose records keep their keys. */
const IN_PLACE = '0001';
/** Every phase looks at every record. */
const LOOKS = 3;
/** Where records without a namespace would go, while nobody has registered it. */
const NOT_YET = 'default';

/** Brings a table of an older layout to the one that this code reads and writes. May be killed, and run again. */
export async function runMigrations(options: MigrateOptions, load?: LoadSdk): Promise<MigrationReport> {
  const { tableName } = options;
  if (typeof tableName !== 'string' || tableName === '') {
    throw new ValidationError('tableName', 'the name of a DynamoDB table', tableName);
  }
  const transport = sdkTransport(options, load);
  try {
    return await migrate({ name: tableName, transport, random: Math.random }, options);
  } finally {
    transport.close();
  }
}

async function migrate(table: Table, options: MigrateOptions): Promise<MigrationReport> {
  const { dryRun = false, signal } = options;
  const from = (await readVersion(table, deadlineIn(REQUEST_MS))) ?? 0;
  // A table that says it is ready was looked at: whoever could have written old records since is refused by it.
  if (from >= SCHEMA_VERSION) return { from, to: from, dryRun, migrations: [], indexes: [] };
  const indexes = await inspectIndexes(table);
  const survey = await surveyTable(table, signal);
  const migrations = await toRun(table, survey);
  if (dryRun) {
    const rehearsed = await rehearseAll(table, migrations, signal);
    return { from, to: from, dryRun, migrations: rehearsed, indexes };
  }
  refuseMissing(table.name, indexes);
  await beginMigration(table, deadlineIn(REQUEST_MS));
  await refuseOldClients(table, survey);
  const outcomes = await runAll(table, migrations, survey, options);
  await refuseLeftovers(table, outcomes, signal);
  await countChildren(table, signal);
  // A table that nobody has used yet is made ready as a new one is.
  if (migrations.length === 0 && (await readDefault(table)) === undefined) await registerFirstNamespace(table);
  await finishMigration(table, deadlineIn(REQUEST_MS));
  const results = migrations.map((migration) => resultOf(migration, outcomes.get(migration.id)));
  return { from, to: SCHEMA_VERSION, dryRun, migrations: results, indexes };
}

/** Also those that were killed after their last record was gone. */
async function toRun(table: Table, { found }: Survey): Promise<readonly Migration[]> {
  const states = await Promise.all(MIGRATIONS.map(async ({ id }) => readState(table, id)));
  return MIGRATIONS.filter(({ id }, at) => {
    const phase = states[at]?.phase ?? 'done';
    return (found.get(id) ?? 0) > 0 || phase !== 'done';
  });
}

async function rehearseAll(
  table: Table,
  migrations: readonly Migration[],
  signal: AbortSignal | undefined,
): Promise<readonly MigrationResult[]> {
  const ns = (await readDefault(table)) ?? NOT_YET;
  const results: MigrationResult[] = [];
  for (const migration of migrations) {
    const { seen, strict, left, problems } = await rehearse(table, migration, ns, signal);
    const { id, title } = migration;
    results.push({ id, title, found: seen, written: 0, removed: 0, strict, left, problems });
  }
  return results;
}

async function runAll(
  table: Table,
  migrations: readonly Migration[],
  { found, homeless }: Survey,
  { signal, onProgress }: MigrateOptions,
): Promise<ReadonlyMap<string, MigrationOutcome>> {
  const outcomes = new Map<string, MigrationOutcome>();
  const registered = await readDefault(table);
  const defaultNs = registered ?? (homeless ? await registerFirstNamespace(table) : NOT_YET);
  for (const migration of migrations) {
    const total = LOOKS * (found.get(migration.id) ?? 0);
    let done = 0;
    const onSeen = (seen: number): void => {
      done = Math.min(total, done + seen);
      onProgress?.({ migration: migration.id, done, total });
    };
    outcomes.set(migration.id, await runMigration({ table, migration, defaultNs, signal, onSeen }));
  }
  return outcomes;
}

/** The version moves only if nothing is left but what the report names. */
async function refuseLeftovers(
  table: Table,
  outcomes: ReadonlyMap<string, MigrationOutcome>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { found } = await surveyTable(table, signal);
  for (const { id, title } of MIGRATIONS) {
    const more = (found.get(id) ?? 0) - (outcomes.get(id)?.left ?? 0);
    if (more > 0) throw stillWritten(`${more} more of migration ${id} (${title}) have come`);
  }
  refuseMisread(table.name, outcomes.get(IN_PLACE));
}

/** These keep their keys: clients would find the ones that were left, and take their seconds for milliseconds. */
function refuseMisread(table: string, outcome: MigrationOutcome | undefined): void {
  if (outcome === undefined || outcome.left === 0) return;
  const [first] = outcome.problems;
  const example = first === undefined ? '' : `, such as ${first.record}: ${first.reason}`;
  const message = `Table ${table} has ${outcome.left} records of v0.9 that have no counterpart${example}`;
  const hint = 'Correct or delete them (headgate migrate --dry-run names them), and migrate again';
  throw new InfrastructureError('infrastructure.migration', `${message}. ${hint}`);
}

async function readDefault(table: Table): Promise<string | undefined> {
  const item = await patiently(async () => readItem(table, buildNamespaceKey('default'), deadlineIn(REQUEST_MS)));
  return item?.['namespace_id']?.S;
}

function resultOf({ id, title }: Migration, outcome: MigrationOutcome | undefined): MigrationResult {
  const { found = 0, written = 0, strict = 0, left = 0, problems = [] } = outcome ?? {};
  return { id, title, found, written, removed: found - left, strict, left, problems };
}
