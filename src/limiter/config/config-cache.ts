import type { ConfigRead } from '../../backend.js';
import type { ResidentBucket } from '../../core/bucket/resident-buckets.js';
import type { ResolvedConfig } from '../../core/config/config.js';
import { TwoKeyMap } from '../../core/two-key-map.js';
import type { EpochMs } from '../../core/units.js';

const MAX_ENTRIES = 10_000;

/** Longer than an eventually consistent read lags. */
const LAG_MS = 10_000;

/** A config as it was read, with what follows from it. Entities that have no settings of their own share one object. */
export interface ResolvedRead extends ResolvedConfig {
  readonly read: ConfigRead;
  /**
   * Whether any limit has a default cost, and whether any is concurrent. Most configs have neither, so the checks are
   * skipped.
   */
  readonly hasCosts: boolean;
  readonly hasSlots: boolean;
  /** Whether the entity or its bucket of this resource has a pause, that ran when it was read. */
  readonly hasPause: boolean;
  /** Whether any limit is a shadow. */
  readonly hasShadows: boolean;
  /** Whether any limit has a `warnAt`. */
  readonly hasWarnings: boolean;
  /** All limits are shadows, because the entity bypasses them. */
  readonly bypasses: boolean;
  /** The parent at which the spending of the entity counts too. */
  readonly cascadesTo: string | null;
}

/** The cached config of one entity and resource. */
export interface CachedConfig {
  readonly entityId: string;
  readonly resource: string;
  readonly resolved: ResolvedRead;
  /** The bucket that the last acquire found, for a store whose buckets are objects of this process. */
  bucket: ResidentBucket | null;
  readonly fetchedAtMs: EpochMs;
  /** The generation of the cache when the entry was read. */
  readonly generation: number;
  /** The entry has expired and is used because the store did not answer. Never set on entries in the cache. */
  readonly isLastKnown?: true;
}

/** How the config cache of this process was used. */
export interface ConfigCacheStats {
  readonly entries: number;
  readonly hits: number;
  readonly misses: number;
  /** How many entries were refreshed in the background before they expired. */
  readonly refreshes: number;
}

/** A bounded cache of resolved configs, with the fetches in flight. */
export class ConfigCache {
  readonly #entries = new TwoKeyMap<CachedConfig>();
  readonly #fetching = new TwoKeyMap<Promise<CachedConfig>>();
  /** Counts the changes that this process made. A result that was fetched before a change must not be cached after it. */
  #generation = 0;
  #clearedAtMs = Number.NEGATIVE_INFINITY;
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

  /** Caches an entry unless this process has made a change since `generation`. Evicts the oldest entry if the cache is full. */
  keep(entry: CachedConfig, generation: number): void {
    if (generation !== this.#generation) return;
    this.#entries.delete(entry.entityId, entry.resource);
    this.#entries.set(entry.entityId, entry.resource, entry);
    if (this.#entries.size > MAX_ENTRIES) this.#entries.deleteOldest();
  }

  fetching(entityId: string, resource: string): Promise<CachedConfig> | undefined {
    return this.#fetching.get(entityId, resource);
  }

  /** One fetch in flight per entity and resource: later callers share it. */
  share(entityId: string, resource: string, fetch: Promise<CachedConfig>): Promise<CachedConfig> {
    const shared = fetch.finally(() => {
      if (this.#fetching.get(entityId, resource) === shared) this.#fetching.delete(entityId, resource);
    });
    this.#fetching.set(entityId, resource, shared);
    return shared;
  }

  /** Whether this process has made no change since the entry was read. */
  isCurrent(entry: CachedConfig): boolean {
    return entry.generation === this.#generation;
  }

  /**
   * Called after a change of this process. Entries are read again when next needed; they stay in case the store does
   * not answer.
   */
  outdate(): void {
    this.#generation += 1;
    this.#fetching.clear();
  }

  /** The caller knows of a change by another process: what is read next must show it. */
  clear(nowMs: EpochMs): void {
    this.#generation += 1;
    this.#clearedAtMs = nowMs;
    this.#entries.clear();
    this.#fetching.clear();
  }

  /** Whether an eventually consistent read could still return what was stored before `clear`. */
  wasJustCleared(nowMs: EpochMs): boolean {
    return Math.abs(nowMs - this.#clearedAtMs) < LAG_MS;
  }

  stats(): ConfigCacheStats {
    return { entries: this.#entries.size, hits: this.#hits, misses: this.#misses, refreshes: this.#refreshes };
  }
}
