import type { Awaitable, ConfigRead } from '../../backend.js';
import {
  type CodeLimits,
  compareVersions,
  CONFIG_REREAD_MS,
  type ConfigLevels,
  type OnUnavailable,
  resolveConfig,
  type StoredConfig,
} from '../../core/config/config.js';
import { BackendUnavailable, isHeadgateError, ValidationError } from '../../core/errors.js';
import { checkEntityId, checkResource } from '../../core/identifiers.js';
import { holdsSlots } from '../../core/limit-kind.js';
import { startTimer } from '../../clock.js';
import { type EpochMs, MAX_CHAIN } from '../../core/units.js';
import { type CachedConfig, ConfigCache, type ResolvedRead } from './config-cache.js';
import { emit } from '../events/emit.js';
import { report, type StoreContext } from '../store-context.js';
import { findPause } from './find-pause.js';
import { isPromise } from '../outage/guard.js';

/** After this part of its lifetime, an entry is refreshed in the background and still used meanwhile. */
const REFRESH_FROM = 0.8;

/** The number of resources whose shared config is kept. */
const MAX_SHARED = 1_000;

/** Resolves limits and parents of one namespace, through a cache. */
export class ConfigResolver {
  readonly cache = new ConfigCache();
  readonly #store: StoreContext;
  readonly #namespace: string;
  readonly #namespaceId: string;
  readonly #code: CodeLimits;
  #lastOnUnavailable: OnUnavailable | null = null;
  /** By resource. */
  readonly #shared = new Map<string, ResolvedRead>();

  constructor(
    store: StoreContext,
    { namespace, namespaceId }: { readonly namespace: string; readonly namespaceId: string },
    code: CodeLimits,
  ) {
    this.#store = store;
    this.#namespace = namespace;
    this.#namespaceId = namespaceId;
    this.#code = code;
  }

  /** The configs of the entity and of the parents that its spending cascades to, in that order. All are read by `endMs`. */
  chain(entityId: string, resource: string, nowMs: EpochMs, endMs: EpochMs): Awaitable<readonly CachedConfig[]> {
    const first = this.resolve(entityId, resource, nowMs, endMs);
    return isPromise(first)
      ? first.then((level) => this.#climb([level], nowMs, endMs))
      : this.#climb([first], nowMs, endMs);
  }

  #climb(
    chain: readonly [CachedConfig, ...CachedConfig[]],
    nowMs: EpochMs,
    endMs: EpochMs,
  ): Awaitable<readonly CachedConfig[]> {
    const child = chain.at(-1);
    const parentId = child?.resolved.cascadesTo ?? null;
    if (parentId === null) return chain;
    refuseLongChain(chain, parentId);
    const { resource } = chain[0];
    // The read of the child failed. Reads of its parents would use up the time that the write needs.
    const known = child?.isLastKnown === true ? this.cache.get(parentId, resource) : undefined;
    const cached = known && asLastKnown(known);
    const parent = cached ?? this.resolve(parentId, resource, nowMs, endMs, this.#justRead(child, nowMs));
    return isPromise(parent)
      ? parent.then((level) => this.#climb([...chain, level], nowMs, endMs))
      : this.#climb([...chain, parent], nowMs, endMs);
  }

  /** The levels that a child shares with its parent, if a read now would return the same. */
  #justRead(child: CachedConfig | undefined, nowMs: EpochMs): SharedLevels | undefined {
    return child?.fetchedAtMs === nowMs && this.cache.isCurrent(child) ? child.resolved.read.levels : undefined;
  }

  resolve(
    entityId: string,
    resource: string,
    nowMs: EpochMs,
    endMs: EpochMs = Number.POSITIVE_INFINITY,
    known?: SharedLevels,
  ): Awaitable<CachedConfig> {
    const entry = this.cache.get(entityId, resource);
    if (entry !== undefined) {
      const ageMs = nowMs - entry.fetchedAtMs;
      const lifeMs = this.#lifeMs(entry, nowMs);
      if (ageMs >= 0 && ageMs < lifeMs && this.cache.isCurrent(entry)) {
        this.cache.countHit();
        if (ageMs >= lifeMs * REFRESH_FROM) this.#refresh(entry, nowMs);
        return entry;
      }
    }
    // Checked only on a miss, because illegal names are never cached.
    checkEntityId(entityId);
    checkResource(resource);
    this.cache.countMiss();
    return this.#fetch(entityId, resource, nowMs, { endMs, ifOut: entry, known });
  }

  /** A pause that runs is cached only as long as any other denial, so that a resume by another process is seen soon. */
  #lifeMs(entry: CachedConfig, nowMs: EpochMs): number {
    const { configCacheMs, denyCacheMs } = this.#store.options;
    return entry.resolved.hasPause && findPause([entry], nowMs) !== null
      ? Math.min(configCacheMs, denyCacheMs)
      : configCacheMs;
  }

  /** The cached config if an acquire at `nowMs` needs neither a read nor a refresh of it, and no pause is in it. */
  fresh(entityId: string, resource: string, nowMs: EpochMs): CachedConfig | undefined {
    const entry = this.cache.get(entityId, resource);
    if (entry === undefined || entry.resolved.hasPause || !this.cache.isCurrent(entry)) return undefined;
    const ageMs = nowMs - entry.fetchedAtMs;
    return ageMs >= 0 && ageMs < this.#store.options.configCacheMs * REFRESH_FROM ? entry : undefined;
  }

  /** The policy that the system config had when it was last read. */
  get lastOnUnavailable(): OnUnavailable | null {
    return this.#lastOnUnavailable;
  }

  /** The cached chain, however old, or else the limits in code. For decisions while the store does not answer. */
  lastKnownChain(entityId: string, resource: string): readonly CachedConfig[] {
    const chain: CachedConfig[] = [];
    for (let next: string | null = entityId; next !== null; next = chain.at(-1)?.resolved.cascadesTo ?? null) {
      refuseLongChain(chain, next);
      const known = this.cache.get(next, resource);
      if (known === undefined && chain.length > 0) break;
      chain.push(known ?? this.#entryOf(next, resource, NOTHING_READ, 0));
    }
    return chain;
  }

  /** Called when a bucket has newer rules than the cached config. Reads the config again, at most once a second. */
  reread(entityId: string, resource: string, nowMs: EpochMs): void {
    const entry = this.cache.get(entityId, resource);
    if (entry !== undefined && nowMs - entry.fetchedAtMs >= CONFIG_REREAD_MS) this.#refresh(entry, nowMs);
  }

  /** The chain as it is stored now. Each level is read again unless it was read within the last second. */
  async renewChain(chain: readonly CachedConfig[], nowMs: EpochMs, endMs: EpochMs): Promise<readonly CachedConfig[]> {
    const [first] = chain;
    if (first === undefined) return chain;
    await Promise.all(
      chain.map(async (entry) => {
        if (nowMs - entry.fetchedAtMs >= CONFIG_REREAD_MS)
          await this.#fetch(entry.entityId, entry.resource, nowMs, { endMs, ifOut: entry });
      }),
    );
    return this.chain(first.entityId, first.resource, nowMs, endMs);
  }

  #refresh(entry: CachedConfig, nowMs: EpochMs): void {
    if (this.cache.fetching(entry.entityId, entry.resource) !== undefined) return;
    this.cache.countRefresh();
    const failed = (error: unknown): void => report(this.#store.options, error, 'config refresh');
    try {
      const fetched = this.#fetch(entry.entityId, entry.resource, nowMs, { endMs: Number.POSITIVE_INFINITY });
      if (isPromise(fetched)) fetched.catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  #fetch(
    entityId: string,
    resource: string,
    nowMs: EpochMs,
    { endMs, ifOut, known }: Fetching,
  ): Awaitable<CachedConfig> {
    const orLastKnown = (error: unknown): CachedConfig => {
      if (ifOut !== undefined && isHeadgateError(error, 'backend.unavailable')) return asLastKnown(ifOut);
      throw error;
    };
    const underway = this.cache.fetching(entityId, resource);
    if (underway !== undefined) return this.#until(endMs, underway).catch(orLastKnown);
    const { generation } = this.cache;
    // A paused entry is read again to find out whether it was resumed: an eventually consistent read could miss that.
    const isExact = ifOut?.resolved.hasPause === true;
    const timeoutMs = this.#store.options.timeouts.callMs;
    const keep = (read: ConfigRead): CachedConfig => {
      const entry = this.#entryOf(entityId, resource, read, nowMs);
      this.#lastOnUnavailable = entry.resolved.onUnavailable;
      if (this.#store.options.onEvent !== null) this.#tellChange(entry);
      this.cache.keep(entry, generation);
      return entry;
    };
    const call = { namespaceId: this.#namespaceId, nowMs, timeoutMs, tuning: this.#store.tuning };
    try {
      const read = this.#store.guard.call({ where: 'reading the config', timeoutMs }, () =>
        this.#store.backend.config.readFor(call, entityId, resource, isExact ? undefined : known, isExact),
      );
      if (!isPromise(read)) return keep(read);
      return this.#until(endMs, this.cache.share(entityId, resource, read.then(keep))).catch(orLastKnown);
    } catch (error) {
      return orLastKnown(error);
    }
  }

  /** Nothing is told after a change of this process, which had an event of its own. */
  #tellChange({ entityId, resource, resolved }: CachedConfig): void {
    const before = this.cache.get(entityId, resource);
    if (before === undefined || !this.cache.isCurrent(before)) return;
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
    const resolved = this.#resolvedOf(resource, read);
    return { entityId, resource, resolved, bucket: null, fetchedAtMs, generation: this.cache.generation };
  }

  /** Entities without settings of their own share one object for each resource: most of the cache would be copies of it. */
  #resolvedOf(resource: string, read: ConfigRead): ResolvedRead {
    const { levels, entity, bucketPause } = read;
    if (
      bucketPause !== undefined ||
      levels.entity !== undefined ||
      levels.entityDefault !== undefined ||
      entity !== undefined
    ) {
      return this.#resolve(read);
    }
    const known = this.#shared.get(resource);
    if (
      known !== undefined &&
      isSame(known.read.levels.resource, levels.resource) &&
      isSame(known.read.levels.system, levels.system)
    ) {
      return known;
    }
    const resolved = this.#resolve(read);
    if (this.#shared.size >= MAX_SHARED) this.#shared.clear();
    this.#shared.set(resource, resolved);
    return resolved;
  }

  #resolve(read: ConfigRead): ResolvedRead {
    const resolved = resolveConfig(read.levels, this.#code);
    return {
      ...resolved,
      read,
      hasCosts: resolved.limits.some(({ cost }) => cost !== undefined),
      hasSlots: resolved.limits.some(({ kind }) => holdsSlots(kind)),
      hasPause: read.bucketPause !== undefined || read.entity?.pause !== undefined,
      hasShadows: read.entity?.bypass === true || resolved.limits.some(({ shadow }) => shadow),
      hasWarnings: resolved.limits.some(({ warnAt }) => warnAt !== undefined),
      bypasses: read.entity?.bypass === true,
      cascadesTo: read.entity?.cascade === true ? read.entity.parentId : null,
    };
  }
}

function isSame(one: StoredConfig | undefined, other: StoredConfig | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  // A store that was restored from a backup may use a version a second time.
  return one.v === other.v && one.onUnavailable === other.onUnavailable && String(one.limits) === String(other.limits);
}

interface Fetching {
  /** When the caller stops waiting. */
  readonly endMs: EpochMs;
  /** Used if the store does not answer. */
  readonly ifOut?: CachedConfig | undefined;
  readonly known?: SharedLevels | undefined;
}

/** The levels that are the same for every entity. */
type SharedLevels = Pick<ConfigLevels, 'resource' | 'system'>;

const NOTHING_READ: ConfigRead = {
  levels: { entity: undefined, entityDefault: undefined, resource: undefined, system: undefined },
  entity: undefined,
};

function asLastKnown(entry: CachedConfig): CachedConfig {
  return { ...entry, isLastKnown: true };
}

/** The store refuses such chains. One that was written by other means must not make every acquire hang. */
function refuseLongChain(chain: readonly CachedConfig[], next: string): void {
  if (chain.length < MAX_CHAIN && !chain.some(({ entityId }) => entityId === next)) return;
  const path = [...chain.map(({ entityId }) => entityId), next];
  throw new ValidationError('entityId', `part of a chain of at most ${MAX_CHAIN} levels, without a cycle`, path);
}
