import type { MigrateOptions, MigrationReport } from '../../backends/dynamodb/migrations/run.js';
import type { TableReadiness, TableVersion } from '../../backends/dynamodb/table/prepare-table.js';
import type { CloudFormation, StackEvent } from './cloudformation.js';
import type { Functions } from './functions.js';
import type { TableFacts } from './table-facts.js';

/** What the operations on a stack work with. */
export interface StackTools {
  readonly cloudformation: CloudFormation;
  readonly functions: Functions;
  readonly tables: Tables;
  /** A name that nobody has: of a change set, or of a request that may be sent twice. */
  readonly newId: () => string;
  readonly pause: (ms: number) => Promise<void>;
  /** Monotonic, in milliseconds. */
  readonly now: () => number;
}

/** What is done inside the table of a stack. */
export interface Tables {
  /** Writes the version record and registers `default` where they are missing; nothing else is touched. */
  prepare(tableName: string): Promise<TableReadiness>;
  readVersion(tableName: string): Promise<TableVersion>;
  /** null: there is no such table. */
  readFacts(tableName: string): Promise<TableFacts | null>;
  migrate(options: Pick<MigrateOptions, 'tableName' | 'dryRun' | 'onProgress'>): Promise<MigrationReport>;
}

/** Whoever waits may want to see what happens. */
export interface Watcher {
  onEvent(event: StackEvent): void;
  /** What is being done now: "waiting for stack headgate-pre". */
  onStep(text: string): void;
}
