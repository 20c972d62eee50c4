import type { Awaitable } from '../../backend.js';
import { type CodeLimits, CONFIG_REREAD_MS, type OnUnavailable } from '../../core/config/config.js';
import { ValidationError } from '../../core/errors.js';
import { checkEntityId, checkResource } from '../../core/identifiers.js';
import { type EpochMs, MAX_CHAIN } from '../../core/units.js';
import { isPromise } from '../outage/guard.js';
import { report, type StoreContext } from '../store-context.js';
import { type CachedConfig, ConfigCache } from './config-cache.js';
import { asLastKnown, ConfigFetcher, type SharedLevels } from './config-fetcher.js';
import { findPause } from './find-pause.js';

/** After this part of its lifetime, an entry is refreshed in the background and still used meanwhile. */
const REFRESH_FROM = 0.8;

/** Resolves limits and parents of one namespace, through a cache. */
export class ConfigResolver {
  readonly cache = new ConfigCache();
  readonly #store: StoreContext;
  readonly #fetcher: ConfigFetcher;

  constructor(
    store: StoreContext,
    namespace: { readonly namespace: string; readonly namespaceId: string },
    code: CodeLimits,
  ) {
    this.#store = store;
    this.#fetcher = new ConfigFetcher(store, namespace, code, this.cache);
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
    return this.#fetcher.fetch(entityId, resource, nowMs, { endMs, ifOut: entry, known });
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
    return this.#fetcher.lastOnUnavailable;
  }

  /** The cached chain, however old, or else the limits in code. For decisions while the store does not answer. */
  lastKnownChain(entityId: string, resource: string): readonly CachedConfig[] {
    const chain: CachedConfig[] = [];
    for (let next: string | null = entityId; next !== null; next = chain.at(-1)?.resolved.cascadesTo ?? null) {
      refuseLongChain(chain, next);
      const known = this.cache.get(next, resource);
      if (known === undefined && chain.length > 0) break;
      chain.push(known ?? this.#fetcher.unreadEntry(next, resource));
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
          await this.#fetcher.fetch(entry.entityId, entry.resource, nowMs, {
            endMs,
            ifOut: entry,
            mustBeExact: true,
          });
      }),
    );
    return this.chain(first.entityId, first.resource, nowMs, endMs);
  }

  #refresh(entry: CachedConfig, nowMs: EpochMs): void {
    if (this.cache.fetching(entry.entityId, entry.resource) !== undefined) return;
    this.cache.countRefresh();
    const failed = (error: unknown): void => report(this.#store.options, error, 'config refresh');
    try {
      const fetched = this.#fetcher.fetch(entry.entityId, entry.resource, nowMs, { endMs: Number.POSITIVE_INFINITY });
      if (isPromise(fetched)) fetched.catch(failed);
    } catch (error) {
      failed(error);
    }
  }
}

/** The store refuses such chains. One that was written by other means must not make every acquire hang. */
function refuseLongChain(chain: readonly CachedConfig[], next: string): void {
  if (chain.length < MAX_CHAIN && !chain.some(({ entityId }) => entityId === next)) return;
  const path = [...chain.map(({ entityId }) => entityId), next];
  throw new ValidationError('entityId', `part of a chain of at most ${MAX_CHAIN} levels, without a cycle`, path);
}
