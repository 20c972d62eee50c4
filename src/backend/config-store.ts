import type { ConfigLevel, ConfigLevels, OnUnavailable, StoredConfig } from '../core/config/config.js';
import type { Limit } from '../core/limit.js';
import type { Pause } from '../core/pause.js';
import type { AdminCall, Awaitable, Call, Page, PageRequest } from './call.js';
import type { EntityRecord } from './entity-store.js';

/** Everything that resolving one entity and resource needs, in one read. */
export interface ConfigRead {
  readonly levels: ConfigLevels;
  /** undefined: the entity has no record, so it has no parent. */
  readonly entity: Pick<EntityRecord, 'parentId' | 'cascade' | 'bypass' | 'pause'> | undefined;
  /** The pause of the entity's bucket of this resource; left out if there is none. */
  readonly bucketPause?: Pause;
}

/** What a write changes in the config of one level. */
export interface ConfigChange {
  /** undefined: the stored field stays. null: the stored field is removed. */
  readonly limits?: readonly Limit[] | null;
  /** Replaces the stored limits of the same names, adds the others, and keeps the rest. Not together with `limits`. */
  readonly mergeLimits?: readonly Limit[];
  readonly onUnavailable?: OnUnavailable | null;
}

/** The stored limits of every level. */
export interface ConfigStore {
  /**
   * `known`: levels that the caller has just read for another entity of the resource. The store need not read them again.
   * `isExact`: the result must show every change that was made before the call.
   */
  readFor(
    call: Call,
    entityId: string,
    resource: string,
    known?: Pick<ConfigLevels, 'resource' | 'system'>,
    isExact?: boolean,
  ): Awaitable<ConfigRead>;
  /** The config of one level; undefined if there is none. */
  read(call: Call, level: ConfigLevel): Awaitable<StoredConfig | undefined>;
  /** At most `MAX_READ` levels. Each result is consistent with the last write, in the order of `levels`. */
  readMany(call: Call, levels: readonly ConfigLevel[]): Awaitable<readonly (StoredConfig | undefined)[]>;
  /** Returns the stored config with the sequence number of this write. */
  write(call: AdminCall, level: ConfigLevel, change: ConfigChange): Awaitable<StoredConfig>;
  /** Entities that have limits of their own for a resource. */
  list(call: Call, resource: string, page: PageRequest): Awaitable<Page<string>>;
  /** Every level that has a config, each once. The store chooses the order. */
  all(call: Call, page: PageRequest): Awaitable<Page<LevelRecord>>;
}

/** One level that has a config. */
export interface LevelRecord {
  readonly level: ConfigLevel;
  readonly config: StoredConfig;
}
