import type { Awaitable, ConfigChange, LevelRecord } from '../../backend.js';
import { type ConfigLevel, type ConfigSource, ON_UNAVAILABLE, type OnUnavailable } from '../../core/config/config.js';
import { ValidationError } from '../../core/errors.js';
import { checkEntityId, checkResource } from '../../core/identifiers.js';
import { checkLimits, type Limit } from '../../core/limit.js';
import type { ConfigCacheStats } from '../config/config-cache.js';
import { emitConfigChange } from '../events/emit.js';
import { callStore, changeStore, type Context } from '../context.js';
import { type Listing, listing, type ListOptions } from './listing.js';
import { checkOneOf } from '../options.js';

/** The limits to store for a level. */
export interface LimitsConfig {
  /** Left out: the stored limits stay. */
  readonly limits?: readonly Limit[];
}

/** The limits and the outage policy to store for the system. */
export interface SystemConfig extends LimitsConfig {
  /** Left out: the stored policy stays. */
  readonly onUnavailable?: OnUnavailable;
}

/** The config of one level. */
export interface ConfigView {
  readonly limits: readonly Limit[];
  readonly onUnavailable: OnUnavailable | null;
}

/** Identifies a level: an entity and a resource, an entity, a resource, or the system. */
export type ConfigLevelRef =
  | { readonly entityId: string; readonly resource?: string }
  | { readonly resource: string }
  | 'system';

/** One level that has a config, with that config. */
export interface ConfigEntry extends ConfigView {
  readonly level: ConfigLevelRef;
}

/** The config that applies to an entity and a resource. */
export interface EffectiveConfig {
  readonly limits: readonly Limit[];
  /** The level that the limits come from; null if no level has any. */
  readonly configSource: ConfigSource | null;
  readonly onUnavailable: OnUnavailable;
}

/** Stored limits. The first level that has any wins: entity and resource, entity default, resource, system, code. */
export class ConfigApi {
  readonly #context: () => Awaitable<Context>;
  /** The context if the store is open; null otherwise, because reading the cache must not open a store. */
  readonly #opened: () => Context | null;

  constructor(context: () => Awaitable<Context>, opened: () => Context | null) {
    this.#context = context;
    this.#opened = opened;
  }

  /** Replaces the limits of the system. Limits that are not in the list are removed. */
  async setSystem(config: SystemConfig): Promise<void> {
    await this.#set({ kind: 'system' }, config);
  }

  /** Replaces the limits of a resource, for all entities that have no limits of their own. */
  async setResource(resource: string, config: LimitsConfig): Promise<void> {
    checkResource(resource);
    await this.#set({ kind: 'resource', resource }, config);
  }

  /** Replaces the limits of one entity on one resource. */
  async setEntity(entityId: string, resource: string, config: LimitsConfig): Promise<void> {
    checkEntityId(entityId);
    checkResource(resource);
    await this.#set({ kind: 'entity', entityId, resource }, config);
  }

  /** Replaces the limits of one entity on all resources for which it has no limits of their own. */
  async setEntityDefault(entityId: string, config: LimitsConfig): Promise<void> {
    checkEntityId(entityId);
    await this.#set({ kind: 'entity_default', entityId }, config);
  }

  /** Changes the named limits and keeps the others. The other `merge` methods do the same for their level. */
  async mergeSystem(config: SystemConfig): Promise<void> {
    await this.#set({ kind: 'system' }, config, 'merge');
  }

  /** Changes the named limits of a resource and keeps the others. */
  async mergeResource(resource: string, config: LimitsConfig): Promise<void> {
    checkResource(resource);
    await this.#set({ kind: 'resource', resource }, config, 'merge');
  }

  /** Changes the named limits of one entity on one resource and keeps the others. */
  async mergeEntity(entityId: string, resource: string, config: LimitsConfig): Promise<void> {
    checkEntityId(entityId);
    checkResource(resource);
    await this.#set({ kind: 'entity', entityId, resource }, config, 'merge');
  }

  /** Changes the named default limits of one entity and keeps the others. */
  async mergeEntityDefault(entityId: string, config: LimitsConfig): Promise<void> {
    checkEntityId(entityId);
    await this.#set({ kind: 'entity_default', entityId }, config, 'merge');
  }

  /** The stored config of one level; null if there is none. */
  async get(ref: ConfigLevelRef): Promise<ConfigView | null> {
    const level = levelOf(ref);
    const context = await this.#context();
    const stored = await callStore(context, 'reading a config', (call) => context.backend.config.read(call, level));
    if (stored === undefined || (stored.limits === null && stored.onUnavailable === null)) return null;
    return { limits: stored.limits ?? [], onUnavailable: stored.onUnavailable };
  }

  /** Removes the config of one level, so that the next level applies. */
  async delete(ref: ConfigLevelRef): Promise<void> {
    await this.#write(levelOf(ref), { limits: null, onUnavailable: null });
  }

  /** Entities that have limits of their own for a resource. */
  list(query: { readonly resource: string } & ListOptions): Listing<string> {
    return listing(query, String, async (page) => {
      checkResource(query.resource);
      const context = await this.#context();
      return callStore(context, 'listing configs', (call) => context.backend.config.list(call, query.resource, page));
    });
  }

  /** Every level that has a config, each once. The store chooses the order. */
  all(options: ListOptions = {}): Listing<ConfigEntry> {
    return listing(options, entryOf, async (page) => {
      const context = await this.#context();
      return callStore(context, 'listing all configs', (call) => context.backend.config.all(call, page));
    });
  }

  /** The limits that an acquire uses, and the level that they come from. */
  async resolve(entityId: string, resource: string): Promise<EffectiveConfig> {
    checkEntityId(entityId);
    checkResource(resource);
    const context = await this.#context();
    const { resolved } = await context.resolver.resolve(entityId, resource, context.clock.now());
    const { limits, configSource } = resolved;
    return { limits, configSource, onUnavailable: context.options.onUnavailable ?? resolved.onUnavailable ?? 'block' };
  }

  /** The config cache of this process. */
  readonly cache = {
    stats: (): ConfigCacheStats =>
      this.#opened()?.resolver.cache.stats() ?? { entries: 0, hits: 0, misses: 0, refreshes: 0 },
    clear: (): void => {
      const context = this.#opened();
      context?.resolver.cache.clear(context.clock.now());
    },
  };

  async #set(level: ConfigLevel, config: SystemConfig, mode: 'replace' | 'merge' = 'replace'): Promise<void> {
    if (typeof config !== 'object' || config === null) throw new ValidationError('config', 'an object', config);
    if (config.limits === undefined && config.onUnavailable === undefined) {
      throw new ValidationError('config', 'an object with limits', config);
    }
    if (config.limits !== undefined) {
      checkLimits('limits', config.limits);
      if (config.limits.length === 0)
        throw new ValidationError('limits', 'at least one limit; delete() removes them', []);
    }
    if (config.onUnavailable !== undefined) {
      if (level.kind !== 'system') throw new ValidationError('onUnavailable', 'set for the system only', level.kind);
      checkOneOf('onUnavailable', config.onUnavailable, ON_UNAVAILABLE);
    }
    const { limits, ...others } = config;
    await this.#write(level, mode === 'merge' && limits !== undefined ? { ...others, mergeLimits: limits } : config);
  }

  async #write(level: ConfigLevel, change: ConfigChange): Promise<void> {
    const context = await this.#context();
    try {
      await changeStore(context, 'writing a config', (call) => context.backend.config.write(call, level, change));
    } finally {
      // Also after a failure: the change may have been written without an answer.
      context.resolver.cache.outdate();
    }
    emitConfigChange(context, level);
  }
}

function entryOf({ level, config: { limits, onUnavailable } }: LevelRecord): ConfigEntry {
  return { level: refOf(level), limits: limits ?? [], onUnavailable };
}

function refOf(level: ConfigLevel): ConfigLevelRef {
  if (level.kind === 'system') return 'system';
  if (level.kind === 'resource') return { resource: level.resource };
  return level.kind === 'entity'
    ? { entityId: level.entityId, resource: level.resource }
    : { entityId: level.entityId };
}

function levelOf(ref: ConfigLevelRef): ConfigLevel {
  if (ref === 'system') return { kind: 'system' };
  if (typeof ref !== 'object' || ref === null || !('entityId' in ref || 'resource' in ref)) {
    throw new ValidationError('level', `{ entityId, resource }, { entityId }, { resource } or 'system'`, ref);
  }
  if ('resource' in ref) checkResource(ref.resource);
  if (!('entityId' in ref)) return { kind: 'resource', resource: ref.resource };
  checkEntityId(ref.entityId);
  return 'resource' in ref && ref.resource !== undefined
    ? { kind: 'entity', entityId: ref.entityId, resource: ref.resource }
    : { kind: 'entity_default', entityId: ref.entityId };
}
