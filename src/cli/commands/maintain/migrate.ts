import type { MigrateOptions, MigrationProgress } from '../../../backends/dynamodb/migrations/run.js';
import type { DroppableSetting } from '../../../backends/dynamodb/migrations/legacy/settings.js';
import { InfrastructureError, ValidationError } from '../../../core/errors.js';
import { formatCount, printable } from '../../../visualize/format.js';
import { drawTable } from '../../../visualize/table.js';
import { addExamples, appendValue, type Definition, onStore, type StoreAction } from '../../run/define-command.js';
import type { GlobalOptions } from '../../run/global-options.js';
import { requireDynamoDB } from '../../run/require-dynamodb.js';
import type { Result } from '../../run/result.js';
import type { Style } from '../../terminal/terminal.js';
import { stopOnSignal } from '../../terminal/interruption.js';

/** `--json` of `migrate` */
export interface MigrateShape {
  /** The layout of the table before and after; 0: a layout without a number. */
  readonly from: number;
  readonly to: number;
  /** The layout to which a run raises the table without converting records; null: none. */
  readonly raisesTo: number | null;
  readonly dryRun: boolean;
  /** The migrations that found records. */
  readonly migrations: readonly {
    readonly id: string;
    readonly title: string;
    /** Old records that were found; new records that were written; old records that were removed. */
    readonly found: number;
    readonly written: number;
    readonly removed: number;
    /** Buckets that were in use already, and were charged what the old ones had spent. */
    readonly strict: number;
    /** Old records that cannot be converted and stay; `problems` has the first 20. */
    readonly left: number;
    readonly problems: readonly { readonly record: string; readonly reason: string }[];
  }[];
  /** Indexes that differ from the definition of this version. */
  readonly indexes: readonly {
    readonly index: string;
    readonly state: 'costly' | 'missing';
    readonly advice: string;
  }[];
  /** Settings of old records that this version does not have, and their effect on the limits. */
  readonly settings: readonly {
    readonly setting: string;
    readonly records: number;
    readonly treatment: 'converted' | 'dropped' | 'refused';
    readonly effect: string;
  }[];
}

export const define: Definition = (command, context) => {
  addExamples(command, [
    'migrate --dry-run --store dynamodb://headgate-prod',
    'migrate --yes --store dynamodb://headgate-prod',
  ])
    .option('--dry-run', 'only read, and show what there is to do')
    .option('--leave', 'leave and report records that cannot be converted, instead of refusing the migration')
    .option('--drop <setting>', 'drop a setting of old records, such as schedules; can be repeated', appendValue)
    .action(onStore(context, migrate));
};

interface MigrateFlags extends GlobalOptions {
  readonly dryRun?: boolean;
  readonly leave?: boolean;
  readonly drop?: readonly string[];
}

const SOME_LEFT_EXIT = 1;

const migrate: StoreAction<MigrateFlags> = async ({ address, confirm, progress }, _args, flags) => {
  const { changesTable, runMigrations } = await import('../../../backends/dynamodb/migrations/run.js');
  const { dryRun, yes, leave = false, drop = [] } = flags;
  const { table, ...reach } = requireDynamoDB(address);
  const settings = await requireSettings(drop);
  return stopOnSignal(async ({ signal }) => {
    const options: MigrateOptions = {
      ...reach,
      tableName: table,
      leave,
      drop: settings,
      signal,
      onProgress: (done) => progress(drawProgress(done)),
    };
    if (dryRun === true) return resultOf(await runMigrations({ ...options, dryRun }));
    // The question names how much is to be moved. A run that will be refused asks no question.
    if (yes !== true) {
      const ahead = await runMigrations({ ...options, dryRun: true });
      const isRefused =
        !leave && leavesRecords(ahead.migrations) && (ahead.from === 0 || movedBy(ahead.migrations) > 0);
      if (changesTable(ahead) && !isRefused) await confirm(describeMigration(`table ${table}`, ahead));
    }
    return resultOf(await runMigrations(options));
  }, interrupted);
};

async function requireSettings(drop: readonly string[]): Promise<readonly DroppableSetting[]> {
  const { DROPPABLE } = await import('../../../backends/dynamodb/migrations/legacy/settings.js');
  return drop.map((setting) => {
    if (Object.hasOwn(DROPPABLE, setting)) return setting as DroppableSetting;
    throw new ValidationError('--drop', `one of ${Object.keys(DROPPABLE).join(', ')}`, setting);
  });
}

function interrupted(): InfrastructureError {
  const message = 'Interrupted: headgate migrate continues from here when it is run again';
  return new InfrastructureError('infrastructure.migration', message, { retryable: true });
}

/** `where` is the table or the stack. Completes "This ...". */
export function describeMigration(
  where: string,
  { from, raisesTo, migrations }: Pick<MigrateShape, 'from' | 'raisesTo' | 'migrations'>,
): string {
  const moved = movedBy(migrations);
  const moves = `moves ${formatCount(moved)} old records of ${where} and removes them: clients of the old version must not run any more`;
  const raises = `raises ${where} from layout ${from} to ${raisesTo}: clients of an older Headgate are refused within two minutes`;
  if (moved === 0 && raisesTo !== null) return raises;
  return raisesTo === null ? moves : `${moves}; and ${raises}`;
}

function resultOf(data: MigrateShape): Result<MigrateShape> {
  return { data, text: (style) => renderMigration(data, style), exitCode: exitCodeOf(data) };
}

export function exitCodeOf({ migrations }: Pick<MigrateShape, 'migrations'>): number {
  return leavesRecords(migrations) ? SOME_LEFT_EXIT : 0;
}

function movedBy(migrations: MigrateShape['migrations']): number {
  return migrations.reduce((sum, { found, left }) => sum + found - left, 0);
}

function leavesRecords(migrations: MigrateShape['migrations']): boolean {
  return migrations.some(({ left }) => left > 0);
}

const BAR = 24;

export function drawProgress({ migration, done, total }: MigrationProgress): string {
  if (total === null || total === 0) return `migration ${migration}: ${formatCount(done)} records`;
  const filled = Math.floor((BAR * done) / total);
  const bar = `${'='.repeat(filled)}${' '.repeat(BAR - filled)}`;
  return `migration ${migration} [${bar}] ${Math.floor((100 * done) / total)} %`;
}

export function renderMigration(report: MigrateShape, style: Style): string {
  const { migrations, indexes, settings } = report;
  const notes = [
    ...settings.map(
      ({ setting, records, treatment, effect }) =>
        `${setting}: ${formatCount(records)} records, ${TREATMENTS[treatment](setting)}: ${effect}`,
    ),
    ...indexes.map(({ index, state, advice }) => `index ${index} ${STATES[state]}: ${advice}`),
  ];
  if (migrations.length === 0) return [headOf(report, style), ...notes].join('\n');
  const rows = migrations.map(({ id, title, found, written, removed, strict, left }) => [
    id,
    found,
    written,
    removed,
    strict,
    left,
    title,
  ]);
  const table = drawTable(['MIGRATION', 'FOUND', 'WRITTEN', 'REMOVED', 'STRICT', 'LEFT', ''], rows, style.width);
  return [headOf(report, style), table, ...problemLines(migrations), ...notes].join('\n');
}

const TREATMENTS = {
  converted: () => 'converted',
  dropped: () => 'dropped',
  refused: (setting: string) => `refused unless --drop ${setting}`,
} as const;

const STATES = { costly: 'makes takes more expensive', missing: 'is missing' } as const;

function headOf({ from, to, raisesTo, dryRun, migrations }: MigrateShape, style: Style): string {
  if (migrations.length === 0) {
    if (raisesTo !== null && dryRun) return `dry run: the table has layout ${from}, a run raises it to ${raisesTo}`;
    if (raisesTo !== null && to > from) return style.green(`raised from layout ${from} to ${to}`);
    return from === to && !dryRun ? `No changes: the table has layout ${to}.` : 'No records of an older layout.';
  }
  if (dryRun) return 'dry run: nothing was written';
  return leavesRecords(migrations)
    ? style.red(`migrated in part from layout ${from} to ${to}`)
    : style.green(`migrated from layout ${from} to ${to}`);
}

function problemLines(migrations: MigrateShape['migrations']): readonly string[] {
  return migrations.flatMap(({ left, problems }) => {
    const lines = problems.map(({ record, reason }) => `  left: ${record}: ${reason}`);
    return [...lines, ...(left > problems.length ? [`  ${formatCount(left)} records are left in all`] : [])].map(
      printable,
    );
  });
}
