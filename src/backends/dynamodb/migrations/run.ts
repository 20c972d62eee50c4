import type { SdkOptions } from '../sdk-transport.js';

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
  /** The layout of the table before and after. */
  readonly from: number;
  readonly to: number;
  readonly dryRun: boolean;
  /** Empty: there was nothing to do. */
  readonly migrations: readonly MigrationResult[];
}

export interface MigrationResult {
  readonly id: string;
  readonly title: string;
  readonly found: number;
  readonly written: number;
  readonly removed: number;
}

/** Brings a table of an older layout to the one that this code reads and writes. */
export async function runMigrations(options: MigrateOptions): Promise<MigrationReport> {
  throw new Error(`not yet: ${options.tableName}`);
}
