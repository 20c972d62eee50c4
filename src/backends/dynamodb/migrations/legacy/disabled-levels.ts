import type { ConfigLevel, StoredConfig } from '../../../../core/config/config.js';
import { Limit, MAX_LIMITS } from '../../../../core/limit.js';
import { FOREVER_MS, type Pause } from '../../../../core/pause.js';
import { readKey } from '../../table/attributes.js';
import { encodePauseAttributes } from '../../table/items.js';
import type { AttributeValue, Item } from '../../client/transport.js';
import { mappable } from './legacy-fields.js';
import { parseLegacyKey } from '../../schema/legacy-key.js';
import type { DroppableSetting } from './settings.js';
import type { TargetNamespaces } from './target-namespaces.js';
import { Unmappable } from '../unmappable.js';

/** The attribute of a converted config that keeps its old setting, for a run that continues. Nothing else reads it. */
const WAS_DISABLED = 'was_disabled';
/** The limit's name when no limit of the namespace has a name. */
const NAMELESS = 'disabled';
const DAY_MS = 86_400_000;
/** The map key for tables without namespaces. */
const NO_NAMESPACE = '';

/** The pause of what an old client disabled. */
export const DISABLED_PAUSE: Pause = { endMs: FOREVER_MS, reason: 'disabled in zae-limiter' };

/** The old setting of a level. */
type Access = 'enabled' | 'disabled' | 'bypass';

interface NotedLevel {
  readonly ns: string;
  readonly level: ConfigLevel;
  readonly access: Access;
  /** The record is not converted yet. */
  readonly isOld: boolean;
}

/** What the record of an entity gets at the end of a migration. */
export interface EntitySetting {
  readonly ns: string;
  readonly entityId: string;
  readonly access: 'disabled' | 'bypass';
}

/**
 * Levels that were disabled or bypassed. The old limiter checks entity and resource, then the entity's default, then the
 * resource, and takes the first level with a setting, with or without limits. Here an entity that was disabled is paused,
 * and its bucket if it was disabled on one resource; an entity that was bypassed bypasses. Everywhere else the first level
 * with limits wins: a disabled level gets limits of 0, a bypassed level shadows, and so does every level that would hide
 * it.
 */
export class DisabledLevels {
  readonly #drop: ReadonlySet<DroppableSetting>;
  readonly #levels = new Map<string, NotedLevel>();
  /** What the resources of an entity say, by namespace and entity. */
  readonly #ofEntities = new Map<string, Set<Access>>();
  /** The first resource that is disabled or bypassed, by namespace. */
  readonly #resources = new Map<string, { readonly resource: string; readonly access: Access }>();
  readonly #names = new Map<string, Set<string>>();

  constructor(drop: ReadonlySet<DroppableSetting> = new Set()) {
    this.#drop = drop;
  }

  /** Records the setting of any item of a table, in an old layout or in this one. */
  note(item: Item): void {
    const key = parseLegacyKey(readKey(item));
    if (key?.kind !== 'config') return;
    const { level } = key;
    const ns = key.ns ?? NO_NAMESPACE;
    if (level.kind === 'resource' || level.kind === 'system') {
      const names = Object.keys(item).flatMap((name) => /^l_(.+)_cp$/.exec(name)?.[1] ?? []);
      this.#names.set(ns, new Set([...(this.#names.get(ns) ?? []), ...names]));
    }
    const access = this.#accessOf(item);
    if (access === undefined || level.kind === 'system') return;
    this.#levels.set(textOf(ns, level), { ns, level, access, isOld: item['disabled'] !== undefined });
    if (level.kind === 'entity') {
      const entity = `${ns}\n${level.entityId}`;
      this.#ofEntities.set(entity, (this.#ofEntities.get(entity) ?? new Set()).add(access));
    } else if (level.kind === 'resource' && access !== 'enabled' && !this.#resources.has(ns)) {
      this.#resources.set(ns, { resource: level.resource, access });
    }
  }

  /** The entities that are paused or bypass. `isContinued`: includes those whose config an earlier run has converted. */
  entitySettings(namespaces: TargetNamespaces, isContinued: boolean): readonly EntitySetting[] {
    return [...this.#levels.values()].flatMap(({ ns: source, level, isOld }): EntitySetting[] => {
      const ns = namespaces.of(source === NO_NAMESPACE ? null : source);
      if (level.kind !== 'entity_default' || ns === null || !(isOld || isContinued)) return [];
      const access = this.#ofWholeEntity([source, ns], level.entityId);
      return access === null ? [] : [{ ns, entityId: level.entityId, access }];
    });
  }

  /**
   * Returns the config that has the effect of the old setting, and the attributes that it has besides. `sources`: all
   * key prefixes of its namespace.
   */
  apply(
    level: ConfigLevel,
    item: Item,
    config: StoredConfig,
    sources: readonly (string | null)[],
  ): { readonly config: StoredConfig; readonly mark: Item } {
    const namespaces = sources.map((ns) => ns ?? NO_NAMESPACE);
    const own = this.#accessOf(item);
    const mark = own === undefined ? {} : { [WAS_DISABLED]: storedAccess(own) };
    const whole = 'entityId' in level ? this.#ofWholeEntity(namespaces, level.entityId) : null;
    if (level.kind === 'entity' && own === 'disabled') {
      return { config, mark: { ...mark, ...encodePauseAttributes(DISABLED_PAUSE) } };
    }
    if (whole !== null && (own === undefined || own === whole)) return { config, mark };
    const access = own ?? this.#above(namespaces, level);
    if (access === 'disabled' && (own === 'disabled' || config.limits !== null)) {
      return { config: { ...config, limits: this.#zeros(namespaces, config.limits ?? []) }, mark };
    }
    this.#refuseHidden(namespaces, level, own, config);
    if (access !== 'bypass' || config.limits === null) return { config, mark };
    return { config: { ...config, limits: config.limits.map(asShadow) }, mark };
  }

  #accessOf(item: Item): Access | undefined {
    const value: AttributeValue | undefined = item['disabled'] ?? item[WAS_DISABLED];
    // With `--drop bypass`, the limits are enforced, also below a disabled level.
    if (value?.S === 'bypass') return this.#drop.has('bypass') ? 'enabled' : 'bypass';
    return value?.BOOL === undefined ? undefined : value.BOOL ? 'disabled' : 'enabled';
  }

  /** The setting of the entity's default, if the record of the entity can say it: no level of it says the contrary. */
  #ofWholeEntity(namespaces: readonly string[], entityId: string): 'disabled' | 'bypass' | null {
    const access = this.#find(namespaces, { kind: 'entity_default', entityId });
    if (access === undefined || access === 'enabled') return null;
    const own = namespaces.flatMap((ns) => [...(this.#ofEntities.get(`${ns}\n${entityId}`) ?? [])]);
    const isContrary = own.includes('enabled') || (own.includes('bypass') && access === 'disabled');
    return isContrary ? null : access;
  }

  #above(namespaces: readonly string[], level: ConfigLevel): Access | undefined {
    if (level.kind !== 'entity') return undefined;
    const { entityId, resource } = level;
    return (
      this.#find(namespaces, { kind: 'entity_default', entityId }) ??
      this.#find(namespaces, { kind: 'resource', resource })
    );
  }

  /** Refuses what would change its effect, and cannot be expressed by limits of this level. */
  #refuseHidden(
    namespaces: readonly string[],
    level: ConfigLevel,
    own: Access | undefined,
    config: StoredConfig,
  ): void {
    const [hidden] = namespaces.flatMap((ns) => this.#resources.get(ns) ?? []);
    if (level.kind === 'entity_default' && own === undefined && config.limits !== null && hidden !== undefined) {
      const what = `the ${hidden.access === 'disabled' ? 'disabled' : 'bypassed'} resource ${hidden.resource}`;
      throw new Unmappable(`its limits would win over ${what}: set limits of this entity for it first`);
    }
    if (own === 'bypass' && level.kind === 'entity_default') {
      throw new Unmappable('it bypasses an entity whose limits one of its resources enforces');
    }
    if (own === 'bypass' && config.limits === null) {
      throw new Unmappable('it bypasses limits of another level, which only a level with limits can do');
    }
    if (own !== 'enabled' || config.limits !== null) return;
    const above = level.kind === 'entity' ? this.#above(namespaces, level) : hidden?.access;
    if (above === undefined || above === 'enabled') return;
    throw new Unmappable(
      `it ${above === 'disabled' ? 'enables what a level above disables' : 'enforces what a level above bypasses'}, which only a level with limits can do`,
    );
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

  #find(namespaces: readonly string[], level: ConfigLevel): Access | undefined {
    return namespaces.map((ns) => this.#levels.get(textOf(ns, level))?.access).find((access) => access !== undefined);
  }
}

function storedAccess(access: Access): AttributeValue {
  return access === 'bypass' ? { S: access } : { BOOL: access === 'disabled' };
}

function asShadow(limit: Limit): Limit {
  return limit.shadow ? limit : Limit.parse(`${String(limit)}!shadow`);
}

function textOf(ns: string, level: ConfigLevel): string {
  return `${ns}\n${JSON.stringify(level)}`;
}
