import type { ConfigRead } from '../backend.js';
import type { ResolvedConfig } from '../core/config.js';
import type { EpochMs } from '../core/units.js';

const MAX_ENTRIES = 10_000;

/** What is known of one entity and resource. */
export interface CachedConfig {
  readonly entityId: string;
  readonly resource: string;
  readonly read: ConfigRead;
  readonly resolved: ResolvedConfig;
  readonly fetchedAtMs: EpochMs;
}

export interface ConfigCacheStats {
  readonly entries: number;
  readonly hits: number;
  readonly misses: number;
  /** Entries that were renewed in the background, before their end. */
  readonly refreshes: number;
}

/** A bounded map of resolved configs, with what is being fetched. */
export class ConfigCache {
  readonly #entries = new Map<string, CachedConfig>();
  readonly #fetching = new Map<string, Promise<CachedConfig>>();
  /** Counts changes of this process: what was fetched before one must not be kept after it. */
  #generation = 0;
  #hits = 0;
  #misses = 0;
  #refreshes = 0;

  get(key: string): CachedConfig | undefined {
    return this.#entries.get(key);
  }

  countHit(): void {
    this.#hits += 1;
  }

  countMiss(): void {
    this.#misses += 1;
  }

  countRefresh(): void {
    this.#refreshes += 1;
  }

  get generation(): number {
    return this.#generation;
  }

  /** Keeps an entry, unless this process has changed something since `generation`. */
  keep(key: string, entry: CachedConfig, generation: number): void {
    if (generation !== this.#generation) return;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    if (this.#entries.size <= MAX_ENTRIES) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }

  fetching(key: string): Promise<CachedConfig> | undefined {
    return this.#fetching.get(key);
  }

  /** One fetch in flight per key: later askers share it. */
  share(key: string, fetch: Promise<CachedConfig>): Promise<CachedConfig> {
    const shared = fetch.finally(() => {
      if (this.#fetching.get(key) === shared) this.#fetching.delete(key);
    });
    this.#fetching.set(key, shared);
    return shared;
  }

  clear(): void {
    this.#generation += 1;
    this.#entries.clear();
    this.#fetching.clear();
  }

  stats(): ConfigCacheStats {
    return { entries: this.#entries.size, hits: this.#hits, misses: this.#misses, refreshes: this.#refreshes };
  }
}
