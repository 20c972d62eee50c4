import { buildLeaseId } from '../../../core/identifiers.js';
import type { EpochMs } from '../../../core/units.js';

/** Longer than any id of a take, and of the same characters. */
const MOVED = /^[0-9A-Za-z_~]{8}~moved(\d{4})$/;

/**
 * The `w` of a bucket that a migration has written: what it counts was used before, in another layout, and is nobody's
 * usage of the hour in which it was moved.
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
