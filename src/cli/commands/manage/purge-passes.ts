import type { Clock } from '../../../clock.js';

export interface PurgePasses {
  /** Removes the records that it finds, and resolves to their number. */
  readonly pass: () => Promise<number>;
  /** How long other clients may write before they notice the deletion; 0: there are no other clients. */
  readonly noticedAfterMs: number;
  readonly clock: Required<Clock>;
  /** Called with the number of removed records, and whether only the last check remains. */
  readonly onProgress: (removed: number, isWaiting: boolean) => void;
}

/**
 * Repeats passes until one finds nothing, and again after all clients have noticed. Resolves to the number of removed
 * records.
 */
export async function purgeUntilEmpty({ pass, noticedAfterMs, clock, onProgress }: PurgePasses): Promise<number> {
  let removed = 0;
  for (let hasWaited = noticedAfterMs === 0; ;) {
    const found = await pass();
    removed += found;
    if (found === 0 && hasWaited) return removed;
    onProgress(removed, found === 0);
    if (found === 0) {
      await clock.sleep(noticedAfterMs);
      hasWaited = true;
    }
  }
}
