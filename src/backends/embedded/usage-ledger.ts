import type { UsageRecord } from '../../backend.js';
import { TwoKeyMap } from '../../core/two-key-map.js';
import { addUsage, USAGE_WINDOWS, type UsageCounts, type UsageWindow, windowStart } from '../../core/usage.js';
import type { EpochMs } from '../../core/units.js';

/** Usage windows that are kept; beyond, those of entities that were idle for longest go first. */
const MAX_WINDOWS = 30_000;

interface Series {
  /** By window and start. */
  readonly windows: Map<string, UsageCounts>;
  used: boolean;
}

/** What entities used, by window, in bounded memory. */
export class UsageLedger {
  readonly #series = new TwoKeyMap<Series>();
  #sweep = this.#series.entries();
  #windows = 0;

  /** Adds to the windows that contain `atMs`. */
  add(entityId: string, resource: string, atMs: EpochMs, counts: UsageCounts): void {
    let series = this.#series.get(entityId, resource);
    if (series === undefined) {
      series = { windows: new Map(), used: true };
      this.#series.set(entityId, resource, series);
    }
    series.used = true;
    const before = series.windows.size;
    for (const window of USAGE_WINDOWS) {
      const key = windowKey(window, windowStart(window, atMs));
      const sum = series.windows.get(key);
      series.windows.set(key, sum === undefined ? counts : addUsage(sum, counts));
    }
    this.#windows += series.windows.size - before;
    if (this.#windows > MAX_WINDOWS) this.#forgetOldest();
  }

  of(entityId: string, resource: string, window: UsageWindow): readonly UsageRecord[] {
    const records: UsageRecord[] = [];
    for (const [key, counts] of this.#series.get(entityId, resource)?.windows ?? []) {
      const [kind, start] = key.split('#');
      if (kind === window) records.push({ ...counts, entityId, resource, window, startMs: Number(start) });
    }
    return records.toSorted((a, b) => a.startMs - b.startMs);
  }

  /** A hand goes round: whoever was used since its last visit stays once more. */
  #forgetOldest(): void {
    for (;;) {
      const next = this.#sweep.next();
      if (next.done === true) {
        this.#sweep = this.#series.entries();
        continue;
      }
      const [entityId, resource, series] = next.value;
      if (series.used) {
        series.used = false;
        continue;
      }
      this.#series.delete(entityId, resource);
      this.#windows -= series.windows.size;
      return;
    }
  }
}

function windowKey(window: UsageWindow, startMs: EpochMs): string {
  return `${window}#${startMs}`;
}
