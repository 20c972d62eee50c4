import type { MigrateOptions, MigrationReport } from '../../backends/dynamodb/migrations/run.js';
import type { TableReadiness, TableVersion } from '../../backends/dynamodb/table/prepare-table.js';
import type { CloudFormation, StackEvent } from './cloudformation.js';
import type { Functions } from './functions.js';
import type { TableFacts } from './table-facts.js';

/** The ports that the operations on a stack use. */
export interface StackTools {
  readonly cloudformation: CloudFormation;
  readonly functions: Functions;
  readonly tables: Tables;
  /** A unique name for a change set or for an idempotent request. */
  readonly newId: () => string;
  readonly pause: (ms: number) => Promise<void>;
  /** Monotonic, in milliseconds. */
  readonly now: () => number;
}

/** Operations on the data of a stack's table. */
export interface Tables {
  /** Writes the version record and registers `default` if they are missing. Changes nothing else. */
  prepare(tableName: string): Promise<TableReadiness>;
  readVersion(tableName: string): Promise<TableVersion>;
  /** null: there is no such table. */
  readFacts(tableName: string): Promise<TableFacts | null>;
  migrate(options: Pick<MigrateOptions, 'tableName' | 'dryRun' | 'onProgress'>): Promise<MigrationReport>;
}

/** Receives the progress of an operation. */
export interface Watcher {
  onEvent(event: StackEvent): void;
  /** The current step: "waiting for stack headgate-pre". */
  onStep(text: string): void;
}
