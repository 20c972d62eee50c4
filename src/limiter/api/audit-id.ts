import type { ULIDFactory } from 'ulidx';
import type { EpochMs } from '../../core/units.js';

let next: ULIDFactory | null = null;

/** An id that sorts by time as text, also within one millisecond of this process. */
export async function createAuditId(nowMs: EpochMs): Promise<string> {
  // Loaded at the first administrative change, because acquires never need it.
  next ??= (await import('ulidx')).monotonicFactory();
  return next(Math.max(0, nowMs));
}
