import type { ConfigLevel, StoredConfig } from '../../../../core/config/config.js';
import { Limit, MAX_LIMITS } from '../../../../core/limit.js';
import { readKey } from '../../table/attributes.js';
import type { AttributeValue, Item } from '../../client/transport.js';
import { mappable } from './legacy-fields.js';
import { parseLegacyKey } from './legacy-key.js';
import { Unmappable } from '../unmappable.js';

/** What a config that was moved keeps of its old setting, so that a run that goes on still finds it. Nothing else reads it. */
const WAS_DISABLED = 'was_disabled';
/** Where no limit of the namespace has a name. */
const NAMELESS = 'disabled';
const DAY_MS = 86_400_000;
/** What stands for the namespace of a table that knew none. */
const NO_NAMESPACE = '';

/**
 * Levels that were disabled. The published walk asks entity and resource, the entity's default, then the resource, and
 * takes the first that says yes or no, whether or not it has limits. Here the first level with limits wins, so a
 * disabled level gets limits of 0, and so does every level that would hide it.
 */
export class DisabledLevels {
  readonly #flags = new Map<string, boolean>();
  readonly #resources = new Map<string, Set<string>>();
  readonly #names = new Map<string, Set<string>>();

  /** Any record of a table, of an old layout or of this one. */
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

  /** The config with limits of 0 where the level was disabled, and the mark of that. `sources`: all that means its namespace in keys. */
  apply(
    level: ConfigLevel,
    item: Item,
    config: StoredConfig,
    sources: readonly (string | null)[],
  ): { readonly config: StoredConfig; readonly mark: Item } {
    const homes = sources.map((ns) => ns ?? NO_NAMESPACE);
    const own = flagOf(item);
    const mark: Item = own === undefined ? {} : { [WAS_DISABLED]: { BOOL: own } };
    const above = own ?? this.#above(homes, level);
    if (above === true && (own === true || config.limits !== null)) {
      return { config: { ...config, limits: this.#zeros(homes, config.limits ?? []) }, mark };
    }
    this.#refuseHidden(homes, level, own, config);
    return { config, mark };
  }

  #above(homes: readonly string[], level: ConfigLevel): boolean | undefined {
    if (level.kind !== 'entity') return undefined;
    const { entityId, resource } = level;
    return this.#flag(homes, { kind: 'entity_default', entityId }) ?? this.#flag(homes, { kind: 'resource', resource });
  }

  /** What would be enabled here although it was disabled, or the reverse, and cannot be said by limits of this level. */
  #refuseHidden(homes: readonly string[], level: ConfigLevel, own: boolean | undefined, config: StoredConfig): void {
    const disabled = homes.flatMap((ns) => [...(this.#resources.get(ns) ?? [])]);
    if (level.kind === 'entity_default' && own === undefined && config.limits !== null && disabled[0] !== undefined) {
      throw new Unmappable(
        `its limits would win over the disabled resource ${disabled[0]}: set limits of this entity for it first`,
      );
    }
    if (own !== false || config.limits !== null) return;
    const hidden = level.kind === 'entity' ? this.#above(homes, level) === true : disabled.length > 0;
    if (hidden) throw new Unmappable('it enables what is disabled above it, which only a level with limits can do');
  }

  /** Each also costs 1 if it is not named: whatever an acquire names, it is refused. */
  #zeros(homes: readonly string[], own: readonly Limit[]): readonly Limit[] {
    const names = new Set([...own.map(({ name }) => name), ...homes.flatMap((ns) => [...(this.#names.get(ns) ?? [])])]);
    if (names.size === 0) names.add(NAMELESS);
    return [...names]
      .toSorted()
      .slice(0, MAX_LIMITS)
      .map((name) => {
        const refillPeriodMs = own.find((limit) => limit.name === name)?.refillPeriodMs ?? DAY_MS;
        return mappable(() => Limit.custom(name, { capacity: 0, refillAmount: 0, refillPeriodMs, cost: 1 }));
      });
  }

  #flag(homes: readonly string[], level: ConfigLevel): boolean | undefined {
    return homes.map((ns) => this.#flags.get(textOf(ns, level))).find((flag) => flag !== undefined);
  }
}

function flagOf(item: Item): boolean | undefined {
  const value: AttributeValue | undefined = item['disabled'] ?? item[WAS_DISABLED];
  // An operator who gives the bypass up has the limits enforced, also below a level that is disabled.
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
