import type { ConfigLevel, StoredConfig } from '../../../../core/config/config.js';
import { Limit, MAX_LIMITS } from '../../../../core/limit.js';
import { readKey } from '../../table/attributes.js';
import type { AttributeValue, Item } from '../../client/transport.js';
import { mappable } from './legacy-fields.js';
import { parseLegacyKey } from '../../schema/legacy-key.js';
import { Unmappable } from '../unmappable.js';

/** The attribute of a converted config that keeps its old setting, for a run that continues. Nothing else reads it. */
const WAS_DISABLED = 'was_disabled';
/** The limit's name when no limit of the namespace has a name. */
const NAMELESS = 'disabled';
const DAY_MS = 86_400_000;
/** The map key for tables without namespaces. */
const NO_NAMESPACE = '';

/**
 * Levels that were disabled. The old limiter checks entity and resource, then the entity's default, then the resource,
 * and takes the first level with a setting, with or without limits. Here the first level with limits wins. So a
 * disabled level gets limits of 0, and so does every level that would hide it.
 */
export class DisabledLevels {
  readonly #flags = new Map<string, boolean>();
  readonly #resources = new Map<string, Set<string>>();
  readonly #names = new Map<string, Set<string>>();

  /** Records the setting of any item of a table, in an old layout or in this one. */
  note(item: Item): void {
    const key = parseLegacyKey(readKey(item));
    if (key?.kind !== 'config') return;
    const { level } = key;
    const ns = key.ns ?? NO_NAMESPACE;
    const flag = flagOf(item);
    if (level.kind === 'resource' || level.kind === 'system') {
      const names = Object.keys(item).flatMap((name) => /^l_(.+)_cp$/.exec(name)?.[1] ?? []);
      addTo(this.#names, ns, names);
      if (flag === true && level.kind === 'resource') addTo(this.#resources, ns, [level.resource]);
    }
    if (flag !== undefined && level.kind !== 'system') this.#flags.set(textOf(ns, level), flag);
  }

  /**
   * Returns the config with limits of 0 if the level was disabled, and the attribute that marks this. `sources`: all
   * key prefixes of its namespace.
   */
  apply(
    level: ConfigLevel,
    item: Item,
    config: StoredConfig,
    sources: readonly (string | null)[],
  ): { readonly config: StoredConfig; readonly mark: Item } {
    const namespaces = sources.map((ns) => ns ?? NO_NAMESPACE);
    const own = flagOf(item);
    const mark: Item = own === undefined ? {} : { [WAS_DISABLED]: { BOOL: own } };
    const above = own ?? this.#above(namespaces, level);
    if (above === true && (own === true || config.limits !== null)) {
      return { config: { ...config, limits: this.#zeros(namespaces, config.limits ?? []) }, mark };
    }
    this.#refuseHidden(namespaces, level, own, config);
    return { config, mark };
  }

  #above(namespaces: readonly string[], level: ConfigLevel): boolean | undefined {
    if (level.kind !== 'entity') return undefined;
    const { entityId, resource } = level;
    return (
      this.#flag(namespaces, { kind: 'entity_default', entityId }) ??
      this.#flag(namespaces, { kind: 'resource', resource })
    );
  }

  /**
   * Refuses what would change from disabled to enabled, or the reverse, and cannot be expressed by limits of this
   * level.
   */
  #refuseHidden(
    namespaces: readonly string[],
    level: ConfigLevel,
    own: boolean | undefined,
    config: StoredConfig,
  ): void {
    const disabled = namespaces.flatMap((ns) => [...(this.#resources.get(ns) ?? [])]);
    if (level.kind === 'entity_default' && own === undefined && config.limits !== null && disabled[0] !== undefined) {
      throw new Unmappable(
        `its limits would win over the disabled resource ${disabled[0]}: set limits of this entity for it first`,
      );
    }
    if (own !== false || config.limits !== null) return;
    const hidden = level.kind === 'entity' ? this.#above(namespaces, level) === true : disabled.length > 0;
    if (hidden) throw new Unmappable('it enables what a level above disables, which only a level with limits can do');
  }

  /** Each limit costs 1 even when an acquire does not name it, so every acquire is refused. */
  #zeros(namespaces: readonly string[], own: readonly Limit[]): readonly Limit[] {
    const names = new Set([
      ...own.map(({ name }) => name),
      ...namespaces.flatMap((ns) => [...(this.#names.get(ns) ?? [])]),
    ]);
    if (names.size === 0) names.add(NAMELESS);
    return [...names]
      .toSorted()
      .slice(0, MAX_LIMITS)
      .map((name) => {
        const refillPeriodMs = own.find((limit) => limit.name === name)?.refillPeriodMs ?? DAY_MS;
        return mappable(() => Limit.custom(name, { capacity: 0, refillAmount: 0, refillPeriodMs, cost: 1 }));
      });
  }

  #flag(namespaces: readonly string[], level: ConfigLevel): boolean | undefined {
    return namespaces.map((ns) => this.#flags.get(textOf(ns, level))).find((flag) => flag !== undefined);
  }
}

function flagOf(item: Item): boolean | undefined {
  const value: AttributeValue | undefined = item['disabled'] ?? item[WAS_DISABLED];
  // With `--drop bypass`, the limits are enforced, also below a disabled level.
  return value?.S === 'bypass' ? false : value?.BOOL;
}

function textOf(ns: string, level: ConfigLevel): string {
  return `${ns}\n${JSON.stringify(level)}`;
}

function addTo(map: Map<string, Set<string>>, key: string, values: readonly string[]): void {
  const set = map.get(key) ?? new Set();
  for (const value of values) set.add(value);
  map.set(key, set);
}
