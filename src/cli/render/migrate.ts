import type { MigrationProgress } from '../../backends/dynamodb/migrations/run.js';
import { formatCount, printable } from '../../visualize/format.js';
import { drawTable } from '../../visualize/table.js';
import type { MigrateShape } from '../shapes.js';
import type { Style } from '../terminal.js';

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

function headOf({ from, to, dryRun, migrations }: MigrateShape, style: Style): string {
  if (migrations.length === 0) {
    return from === to && !dryRun ? `Nothing to do: the table is of layout ${to}.` : 'No records of an older layout.';
  }
  if (dryRun) return 'dry run: nothing was written';
  return style.green(`migrated from layout ${from} to ${to}`);
}

function problemLines(migrations: MigrateShape['migrations']): readonly string[] {
  return migrations.flatMap(({ left, problems }) => {
    const lines = problems.map(({ record, reason }) => `  left: ${record}: ${reason}`);
    return [...lines, ...(left > problems.length ? [`  ${formatCount(left)} records are left in all`] : [])].map(
      printable,
    );
  });
}
