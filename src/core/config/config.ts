import { type Limit, sameRule } from '../limit.js';
import type { EpochMs } from '../units.js';

/** What an acquire does while the store does not answer. */
export type OnUnavailable = 'block' | 'allow' | 'local';

export const ON_UNAVAILABLE: readonly OnUnavailable[] = ['block', 'allow', 'local'];

/**
 * The shortest time between two reads of a config that turned out to be old. Also the announced wait of an ask that needs
 * a newer config.
 */
export const CONFIG_REREAD_MS = 1_000;

/** Where resolved limits came from. `code`: the `limits` given to `RateLimiter.open`. */
export type ConfigSource = 'entity' | 'entity_default' | 'resource' | 'system' | 'code';

/** Identifies one level of configuration. */
export type ConfigLevel =
  | { readonly kind: 'entity'; readonly entityId: string; readonly resource: string }
  | { readonly kind: 'entity_default'; readonly entityId: string }
  | { readonly kind: 'resource'; readonly resource: string }
  | { readonly kind: 'system' };

/** The config of one level. A deleted level stays stored, without limits, because its version must not be lost. */
export interface StoredConfig {
  readonly limits: readonly Limit[] | null;
  readonly onUnavailable: OnUnavailable | null;
  /** The sequence number, within the namespace, of the write that stored this. */
  readonly v: number;
}

/** The stored levels that apply to one entity and resource; undefined where no config was ever stored. */
export interface ConfigLevels {
  readonly entity: StoredConfig | undefined;
  readonly entityDefault: StoredConfig | undefined;
  readonly resource: StoredConfig | undefined;
  readonly system: StoredConfig | undefined;
}

/**
 * Orders configurations in time, so that a client with an old cache cannot undo a newer config. Compared first: the
 * largest sequence number of the levels. Then, for limits given in code: the time at which the limiter was opened.
 */
export interface ConfigVersion {
  readonly sequence: number;
  readonly openedAtMs: EpochMs;
}

export interface ResolvedConfig {
  /** Empty if no level has any. */
  readonly limits: readonly Limit[];
  readonly configSource: ConfigSource | null;
  readonly onUnavailable: OnUnavailable | null;
  readonly version: ConfigVersion;
}

/** Limits given in code: the lowest level. */
export interface CodeLimits {
  readonly limits: readonly Limit[];
  readonly openedAtMs: EpochMs;
}

/** Uses all limits of the first level that has any: entity and resource, entity default, resource, system, code. */
export function resolveConfig(levels: ConfigLevels, code: CodeLimits): ResolvedConfig {
  const ordered: readonly (readonly [ConfigSource, StoredConfig | undefined])[] = [
    ['entity', levels.entity],
    ['entity_default', levels.entityDefault],
    ['resource', levels.resource],
    ['system', levels.system],
  ];
  const sequence = Math.max(0, ...ordered.map(([, config]) => config?.v ?? 0));
  const onUnavailable = levels.system?.onUnavailable ?? null;
  for (const [configSource, config] of ordered) {
    if (config !== undefined && config.limits !== null && config.limits.length > 0) {
      return { limits: config.limits, configSource, onUnavailable, version: { sequence, openedAtMs: 0 } };
    }
  }
  return {
    limits: code.limits,
    configSource: code.limits.length > 0 ? 'code' : null,
    onUnavailable,
    version: { sequence, openedAtMs: code.openedAtMs },
  };
}

/** Negative if `a` is older than `b`, 0 if they are the same. */
export function compareVersions(a: ConfigVersion, b: ConfigVersion): number {
  return a.sequence - b.sequence || a.openedAtMs - b.openedAtMs;
}

/**
 * What to do with a bucket when a client brings a config:
 * - `settle`: the config is newer and its rules differ. The bucket gets these rules.
 * - `adopt`: the config is newer and its rules are the same. The bucket stores only the new version. Otherwise, after a
 *   change from A to B and back to A, a client that has B cached would put B in.
 * - `reread`: the config is older and its rules differ. The bucket decides by its own rules, and the client must read
 *   its config again.
 * - `keep`: no change.
 */
export function compareConfig(
  stored: { readonly limits: readonly { readonly limit: Limit }[]; readonly version: ConfigVersion },
  held: { readonly limits: readonly Limit[]; readonly version: ConfigVersion },
): 'settle' | 'adopt' | 'reread' | 'keep' {
  const order = compareVersions(held.version, stored.version);
  if (order === 0) return 'keep';
  const same =
    stored.limits.length === held.limits.length &&
    held.limits.every((limit) => stored.limits.some((other) => sameRule(other.limit, limit)));
  if (order > 0) return same ? 'adopt' : 'settle';
  return same ? 'keep' : 'reread';
}
