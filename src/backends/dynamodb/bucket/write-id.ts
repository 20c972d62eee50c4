import { buildLeaseId } from '../../../core/identifiers.js';
import type { EpochMs } from '../../../core/units.js';

/** The time of the write and 36 random bits. Usage is counted in the window of this time. */
export function createWriteId(nowMs: EpochMs, random: () => number): string {
  return buildLeaseId(nowMs, random()) + buildLeaseId(0, random()).slice(8);
}
