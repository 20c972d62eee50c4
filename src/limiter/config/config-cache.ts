import type { ConfigRead } from '../../backend.js';
import type { ResolvedConfig } from '../../core/config/config.js';
import { TwoKeyMap } from '../../core/two-key-map.js';
import type { EpochMs } from '../../core/units.js';

const MAX_ENTRIES = 10_000;

/** What is known of one entity and resource. */
export interface CachedConfig {
  readonly entityId: string;
  readonly resource: string;
  readonly read: ConfigRead;
  readonly resolved: ResolvedConfig;
  /** Whether any limit has a default cost, and whether any gives slots: most have neither, and need no second look. */
  readonly hasCosts: boolean;
  readonly hasSlots: boolean;
  readonly fetchedAtMs: EpochMs;
  /** The state of this process's own changes in which it was read. */
  readonly generation: number;
  /** It is too old, and serves because the store did not answer. Never set on what is kept. */
  readonly isLastKnown?: true;
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
  readonly #entries = new TwoKeyMap<CachedConfig>();
  #oldest = this.#entries.entries();
  readonly #fetching = new TwoKeyMap<Promise<CachedConfig>>();
  /** Counts changes of this process: what was fetched before one must not be kept after it. */
  #generation = 0;
  #hits = 0;
  #misses = 0;
  #refreshes = 0;

  get(entityId: string, resource: string): CachedConfig | undefined {
    return this.#entries.get(entityId, resource);
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

  /** Keeps an entry, unless this process has changed something since `generation`. The oldest makes room for it. */
  keep(entry: CachedConfig, generation: number): void {
    if (generation !== this.#generation) return;
    this.#entries.delete(entry.entityId, entry.resource);
    this.#entries.set(entry.entityId, entry.resource, entry);
    if (this.#entries.size > MAX_ENTRIES) this.#forgetOldest();
  }

  /** Goes on where it stopped: starting over would step over the gaps of all that was deleted before. */
  #forgetOldest(): void {
    let next = this.#oldest.next();
    if (next.done === true) {
      this.#oldest = this.#entries.entries();
      next = this.#oldest.next();
    }
    if (next.done !== true) this.#entries.delete(next.value[0], next.value[1]);
  }

  fetching(entityId: string, resource: string): Promise<CachedConfig> | undefined {
    return this.#fetching.get(entityId, resource);
  }

  /** One fetch in flight per entity and resource: later askers share it. */
  share(entityId: string, resource: string, fetch: Promise<CachedConfig>): Promise<CachedConfig> {
    const shared = fetch.finally(() => {
      if (this.#fetching.get(entityId, resource) === shared) this.#fetching.delete(entityId, resource);
    });
    this.#fetching.set(entityId, resource, shared);
    return shared;
  }

  /** Whether this process has changed nothing since the entry was read. */
  isCurrent(entry: CachedConfig): boolean {
    return entry.generation === this.#generation;
  }

  /** After a change of this process: everything is read again when next needed, and kept in case the store is out then. */
  outdate(): void {
    this.#generation += 1;
    this.#fetching.clear();
  }

  clear(): void {
    this.#generation += 1;
    this.#entries.clear();
    this.#oldest = this.#entries.entries();
    this.#fetching.clear();
  }

  stats(): ConfigCacheStats {
    return { entries: this.#entries.size, hits: this.#hits, misses: this.#misses, refreshes: this.#refreshes };
  }
}
