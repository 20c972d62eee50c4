import type { ULIDFactory } from 'ulidx';
import type { EpochMs } from '../../core/units.js';

let next: ULIDFactory | null = null;

/** An id whose order as text is the order in time, also within one millisecond of this process. */
export async function createAuditId(nowMs: EpochMs): Promise<string> {
  // Loaded with the first change that an operator makes: acquires never need it.
  next ??= (await import('ulidx')).monotonicFactory();
  return next(Math.max(0, nowMs));
}
