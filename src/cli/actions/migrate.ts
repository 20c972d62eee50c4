import { type MigrateOptions, type MigrationReport, runMigrations } from '../../backends/dynamodb/migrations/run.js';
import { DROPPABLE, type DroppableSetting } from '../../backends/dynamodb/migrations/legacy/settings.js';
import { InfrastructureError, ValidationError } from '../../core/errors.js';
import { formatCount } from '../../visualize/format.js';
import type { StoreAction } from '../define-command.js';
import type { GlobalOptions } from '../global-options.js';
import { drawProgress, renderMigration } from '../render/migrate.js';
import type { Result } from '../result.js';
import type { MigrateShape } from '../shapes.js';
import { requireDynamoDB } from './dynamodb-address.js';

interface MigrateFlags extends GlobalOptions {
  readonly dryRun?: boolean;
  readonly leave?: boolean;
  readonly drop?: readonly string[];
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;
const SOME_LEFT_EXIT = 1;

export const migrate: StoreAction<MigrateFlags> = async ({ address, confirm, progress }, _args, flags) => {
  const { dryRun, yes, leave = false, drop = [] } = flags;
  const { table, ...reach } = requireDynamoDB(address);
  const stop = new AbortController();
  const onSignal = (): void => stop.abort(interrupted());
  for (const signal of SIGNALS) process.once(signal, onSignal);
  const options: MigrateOptions = {
    ...reach,
    tableName: table,
    leave,
    drop: requireSettings(drop),
    signal: stop.signal,
    onProgress: (told) => progress(drawProgress(told)),
  };
  try {
    if (dryRun === true) return resultOf(await runMigrations({ ...options, dryRun }));
    // The question names what is ahead. Where records stand in the way, the run is refused without a question.
    if (yes !== true) {
      const ahead = await runMigrations({ ...options, dryRun: true });
      const isRefused = !leave && ahead.migrations.some((migration) => migration.left > 0);
      if (ahead.migrations.length > 0 && !isRefused) await confirm(describe(table, ahead));
    }
    return resultOf(await runMigrations(options));
  } finally {
    for (const signal of SIGNALS) process.removeListener(signal, onSignal);
  }
};

function requireSettings(drop: readonly string[]): readonly DroppableSetting[] {
  return drop.map((setting) => {
    if (Object.hasOwn(DROPPABLE, setting)) return setting as DroppableSetting;
    throw new ValidationError('--drop', `one of ${Object.keys(DROPPABLE).join(', ')}`, setting);
  });
}

function interrupted(): InfrastructureError {
  const message = 'Interrupted: headgate migrate continues from here when it is run again';
  return new InfrastructureError('infrastructure.migration', message, { retryable: true });
}

function describe(table: string, { migrations }: MigrationReport): string {
  const found = migrations.reduce((sum, migration) => sum + migration.found, 0);
  return `moves ${formatCount(found)} old records of table ${table} and removes them, which old clients must not use any more`;
}

function resultOf(data: MigrateShape): Result<MigrateShape> {
  const left = data.migrations.some((migration) => migration.left > 0);
  return { data, text: (style) => renderMigration(data, style), exitCode: left ? SOME_LEFT_EXIT : 0 };
}
