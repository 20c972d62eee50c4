import type { Page, PageRequest, UsageQuery, UsageRecord } from '../../backend.js';
import { TwoKeyMap } from '../../core/two-key-map.js';
import { addUsage, USAGE_WINDOWS, type UsageCounts, type UsageWindow, windowStart } from '../../core/usage/usage.js';
import type { EpochMs } from '../../core/units.js';
import { pageOf } from '../../core/paging.js';
import { usageKey } from './usage.js';

/** The number of usage windows that are kept; beyond it, the windows of the longest idle entities are evicted. */
const MAX_WINDOWS = 30_000;

interface Series {
  /** By window and start. */
  readonly windows: Map<string, UsageCounts>;
  used: boolean;
}

/** The usage of entities by window, in bounded memory. */
export class UsageLedger {
  readonly #series = new TwoKeyMap<Series>();
  #sweep = this.#series.entries();
  #windows = 0;

  get size(): number {
    return this.#windows;
  }

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
    if (this.#windows > MAX_WINDOWS) this.#evictOldest();
  }

  query(query: UsageQuery, page: PageRequest): Page<UsageRecord> {
    return pageOf(this.#matching(query), page, usageKey);
  }

  *#matching({ entityId, resource, window, fromMs, toMs }: UsageQuery): Generator<UsageRecord> {
    for (const [owner, series] of this.#seriesOf(entityId, resource)) {
      for (const [key, counts] of series.windows) {
        const [kind, start] = key.split('#');
        const startMs = Number(start);
        if (kind !== window || startMs < fromMs || startMs >= toMs) continue;
        yield { ...counts, entityId: owner, resource, window, startMs };
      }
    }
  }

  *#seriesOf(entityId: string | null, resource: string): Generator<readonly [string, Series]> {
    if (entityId !== null) {
      const series = this.#series.get(entityId, resource);
      if (series !== undefined) yield [entityId, series];
      return;
    }
    for (const [owner, named, series] of this.#series.entries()) if (named === resource) yield [owner, series];
  }

  /** Clock eviction: a series that was used since the cursor's last visit is kept for one more round. */
  #evictOldest(): void {
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
