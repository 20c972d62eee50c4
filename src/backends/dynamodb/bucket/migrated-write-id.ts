import { buildLeaseId } from '../../../core/identifiers.js';
import type { EpochMs } from '../../../core/units.js';

/** Longer than the id of any other write, with the same characters. */
const MOVED = /^[0-9A-Za-z_~]{8}~moved(\d{4})$/;

/**
 * The `w` of a bucket that a migration has written. Its counters were used before, in the old layout, and are not usage
 * of the hour of the migration.
 */
export function buildMigratedWriteId(migration: string, atMs: EpochMs): string {
  return `${buildLeaseId(atMs, 0).slice(0, 8)}~moved${migration}`;
}

export function isMigratedWriteId(writeId: string): boolean {
  return MOVED.test(writeId);
}

export function isWriteOfMigration(migration: string, writeId: string): boolean {
  return MOVED.exec(writeId)?.[1] === migration;
}
