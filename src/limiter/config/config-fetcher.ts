import type { Awaitable, ConfigRead } from '../../backend.js';
import { startTimer } from '../../clock.js';
import { type CodeLimits, compareVersions, type ConfigLevels, type OnUnavailable } from '../../core/config/config.js';
import { BackendUnavailable, isHeadgateError } from '../../core/errors.js';
import type { EpochMs } from '../../core/units.js';
import { emit } from '../events/emit.js';
import { isPromise } from '../outage/guard.js';
import type { StoreContext } from '../store-context.js';
import type { CachedConfig, ConfigCache } from './config-cache.js';
import { ResolvedReads } from './resolved-reads.js';

/** The levels that are the same for every entity. */
export type SharedLevels = Pick<ConfigLevels, 'resource' | 'system'>;

interface Fetching {
  /** When the caller stops waiting. */
  readonly endMs: EpochMs;
  /** Used if the store does not answer. */
  readonly ifOut?: CachedConfig | undefined;
  readonly known?: SharedLevels | undefined;
  /** The read must show every change that was made before it. */
  readonly mustBeExact?: boolean;
}

const NOTHING_READ: ConfigRead = {
  levels: { entity: undefined, entityDefault: undefined, resource: undefined, system: undefined },
  entity: undefined,
};

/** Reads the configs of one namespace from the store into a cache. */
export class ConfigFetcher {
  readonly #store: StoreContext;
  readonly #namespace: string;
  readonly #namespaceId: string;
  readonly #cache: ConfigCache;
  readonly #resolvedReads: ResolvedReads;
  #lastOnUnavailable: OnUnavailable | null = null;

  constructor(
    store: StoreContext,
    { namespace, namespaceId }: { readonly namespace: string; readonly namespaceId: string },
    code: CodeLimits,
    cache: ConfigCache,
  ) {
    this.#store = store;
    this.#namespace = namespace;
    this.#namespaceId = namespaceId;
    this.#resolvedReads = new ResolvedReads(code);
    this.#cache = cache;
  }

  /** The policy that the system config had when it was last read. */
  get lastOnUnavailable(): OnUnavailable | null {
    return this.#lastOnUnavailable;
  }

  /** The entry of an entity of which nothing was read: the limits in code. */
  unreadEntry(entityId: string, resource: string): CachedConfig {
    return this.#entryOf(entityId, resource, NOTHING_READ, 0);
  }

  /** Reads the config, or joins a read in flight. */
  fetch(
    entityId: string,
    resource: string,
    nowMs: EpochMs,
    { endMs, ifOut, known, mustBeExact = false }: Fetching,
  ): Awaitable<CachedConfig> {
    const orLastKnown = (error: unknown): CachedConfig => {
      if (ifOut !== undefined && isHeadgateError(error, 'backend.unavailable')) return asLastKnown(ifOut);
      throw error;
    };
    const underway = this.#cache.fetching(entityId, resource);
    if (underway !== undefined) return this.#until(endMs, underway).catch(orLastKnown);
    const { generation } = this.#cache;
    // A paused entry is read again to find out whether it was resumed: an eventually consistent read could miss that.
    const isRenewed = mustBeExact || ifOut?.resolved.hasPause === true;
    const isExact = isRenewed || this.#cache.wasJustCleared(nowMs);
    const timeoutMs = this.#store.options.timeouts.callMs;
    const keep = (read: ConfigRead): CachedConfig => {
      const entry = this.#entryOf(entityId, resource, read, nowMs);
      this.#lastOnUnavailable = entry.resolved.onUnavailable;
      if (this.#store.options.onEvent !== null) this.#emitChange(entry);
      this.#cache.keep(entry, generation);
      return entry;
    };
    const call = { namespaceId: this.#namespaceId, nowMs, timeoutMs, tuning: this.#store.tuning };
    try {
      const read = this.#store.guard.call({ where: 'reading the config', timeoutMs }, () =>
        this.#store.backend.config.readFor(call, entityId, resource, isRenewed ? undefined : known, isExact),
      );
      if (!isPromise(read)) return keep(read);
      return this.#until(endMs, this.#cache.share(entityId, resource, read.then(keep))).catch(orLastKnown);
    } catch (error) {
      return orLastKnown(error);
    }
  }

  /** Emits nothing after a change of this process, which had an event of its own. */
  #emitChange({ entityId, resource, resolved }: CachedConfig): void {
    const before = this.#cache.get(entityId, resource);
    if (before === undefined || !this.#cache.isCurrent(before)) return;
    if (compareVersions(before.resolved.version, resolved.version) === 0) return;
    const namespace = this.#namespace;
    emit(this.#store.options, { type: 'config-change', namespace, by: 'read', entityId, resource });
  }

  /** Callers share a read. Each waits until its own deadline; the read itself continues for the others. */
  #until<T>(endMs: EpochMs, fetch: Promise<T>): Promise<T> {
    const { clock, options } = this.#store;
    const leftMs = endMs - clock.now();
    // The deadline of the read itself is not later.
    if (leftMs >= options.timeouts.callMs) return fetch;
    return new Promise((resolve, reject) => {
      const error = new BackendUnavailable('reading the config: no time left for the call', 'timeout');
      const stopTimer = startTimer(clock, Math.max(0, leftMs), () => reject(error));
      fetch.finally(stopTimer).then(resolve, reject);
    });
  }

  #entryOf(entityId: string, resource: string, read: ConfigRead, fetchedAtMs: EpochMs): CachedConfig {
    const resolved = this.#resolvedReads.of(resource, read, fetchedAtMs);
    return { entityId, resource, resolved, bucket: null, fetchedAtMs, generation: this.#cache.generation };
  }
}

/** The entry has expired, and is used because the store does not answer. */
export function asLastKnown(entry: CachedConfig): CachedConfig {
  return { ...entry, isLastKnown: true };
}
