import type { Clock } from '../clock.js';

export interface PurgePasses {
  /** Removes what it finds, and gives how much that was. */
  readonly pass: () => Promise<number>;
  /** How long others may go on writing before they notice; 0: nobody can. */
  readonly noticedAfterMs: number;
  readonly clock: Required<Clock>;
  /** Hears how much is gone, and whether only the last look is left. */
  readonly onProgress: (removed: number, isWaiting: boolean) => void;
}

/** Removes until nothing is left, and once more when everybody must have noticed. Gives how much that was. */
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
