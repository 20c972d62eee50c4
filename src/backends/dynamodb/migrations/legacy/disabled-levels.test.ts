import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ConfigLevel, StoredConfig } from '../../../../core/config/config.js';
import { Limit } from '../../../../core/limit.js';
import { buildConfigKey, keyItem } from '../../table/keys.js';
import type { Item } from '../../client/transport.js';
import { DisabledLevels } from './disabled-levels.js';
import type { TargetNamespaces } from './target-namespaces.js';
import { Unmappable } from '../unmappable.js';

const NS = 'ns';
const ENTITIES = ['a', 'b'];
const RESOURCES = ['r', 's'];
const LIMITS = [Limit.perDay('rpd', 9)];

interface OldLevel {
  readonly level: ConfigLevel;
  readonly hasLimits: boolean;
  readonly disabled: boolean | 'bypass' | undefined;
}

const LEVELS: readonly ConfigLevel[] = [
  { kind: 'system' },
  ...RESOURCES.map((resource): ConfigLevel => ({ kind: 'resource', resource })),
  ...ENTITIES.map((entityId): ConfigLevel => ({ kind: 'entity_default', entityId })),
  ...ENTITIES.flatMap((entityId) => RESOURCES.map((resource): ConfigLevel => ({ kind: 'entity', entityId, resource }))),
];
const SYSTEM: ConfigLevel = { kind: 'system' };

const chainOf = (entityId: string, resource: string): readonly ConfigLevel[] => [
  { kind: 'entity', entityId, resource },
  { kind: 'entity_default', entityId },
  { kind: 'resource', resource },
];
const itemOf = ({ level, hasLimits, disabled }: OldLevel): Item => ({
  ...keyItem(buildConfigKey(NS, level)),
  ...(hasLimits ? { l_rpd_cp: { N: '9' } } : {}),
  ...(disabled === undefined ? {} : { disabled: disabled === 'bypass' ? { S: disabled } : { BOOL: disabled } }),
});
const same = (a: ConfigLevel, b: ConfigLevel): boolean => JSON.stringify(a) === JSON.stringify(b);

interface NewLevel extends OldLevel {
  readonly limits: readonly Limit[] | null;
  readonly isPaused: boolean;
}

/** Every level of a table after the migration; null: one of them is refused. */
function moved(olds: readonly OldLevel[], levels: DisabledLevels): readonly NewLevel[] | null {
  try {
    return olds.map((old) => {
      const config: StoredConfig = { limits: old.hasLimits ? LIMITS : null, onUnavailable: null, v: 1 };
      const { config: result, mark } = levels.apply(old.level, itemOf(old), config, [NS]);
      return { ...old, limits: result.limits, isPaused: mark['pz'] !== undefined };
    });
  } catch (error) {
    if (error instanceof Unmappable) return null;
    throw error;
  }
}

const tables = fc
  .array(
    fc.record({
      level: fc.constantFrom(...LEVELS),
      hasLimits: fc.boolean(),
      disabled: fc.constantFrom(true, false, 'bypass' as const, undefined),
    }),
    { maxLength: LEVELS.length },
  )
  .map((olds) => olds.filter(({ level }, at) => olds.findIndex((old) => same(old.level, level)) === at))
  .map((olds) => olds.map((old) => (old.level.kind === 'system' ? { ...old, disabled: undefined } : old)));

const NAMESPACES: TargetNamespaces = { of: (ns) => ns, isMoved: () => false, sourcesOf: (ns) => [ns] };

test('what was disabled is refused, what was bypassed is not enforced, and everything else is enforced', () => {
  const judged = { enabled: 0, disabled: 0, bypass: 0 };
  fc.assert(
    fc.property(tables, (olds) => {
      const levels = new DisabledLevels();
      for (const old of olds) levels.note(itemOf(old));
      const news = moved(olds, levels);
      if (news === null) return;
      const settings = levels.entitySettings(NAMESPACES, false);
      for (const [entityId, resource] of ENTITIES.flatMap((id) => RESOURCES.map((name) => [id, name] as const))) {
        const chain = chainOf(entityId, resource);
        const flags = chain.map((level) => olds.find((old) => same(old.level, level))?.disabled);
        const flag = flags.find((found) => found !== undefined) ?? false;
        const winner = [...chain, SYSTEM]
          .map((level) => news.find((found) => same(found.level, level))?.limits)
          .find((limits) => limits !== null && limits !== undefined);
        const { access } = settings.find((found) => found.entityId === entityId) ?? {};
        const isPaused = access === 'disabled' || news.some((found) => same(found.level, chain[0]!) && found.isPaused);
        const isShadow = access === 'bypass' || winner?.every(({ shadow }) => shadow) === true;
        const isZero = winner?.every(({ capacity, cost }) => capacity === 0 && cost === 1) === true;
        expect(isPaused || (isZero && !isShadow)).toBe(flag === true);
        if (flag !== true && winner !== undefined) expect(isShadow).toBe(flag === 'bypass');
        judged[flag === true ? 'disabled' : flag === 'bypass' ? 'bypass' : 'enabled'] += 1;
      }
    }),
    { numRuns: 1_000 },
  );
  for (const count of Object.values(judged)) expect(count).toBeGreaterThan(100);
});

test('a run that continues after some levels were converted gives the same limits', () => {
  const levels = new DisabledLevels();
  const resource = { level: LEVELS[1]!, hasLimits: true, disabled: true };
  const { config, mark } = new DisabledLevels().apply(
    resource.level,
    itemOf(resource),
    { limits: LIMITS, onUnavailable: null, v: 1 },
    [NS],
  );
  expect(config.limits?.map(String)).toEqual(['rpd:0/day@1']);
  levels.note({ ...keyItem(buildConfigKey(NS, resource.level)), ...mark, l_rpd_cp: { N: '0' } });
  const own: OldLevel = {
    level: { kind: 'entity', entityId: 'a', resource: 'r' },
    hasLimits: true,
    disabled: undefined,
  };
  expect(moved([own], levels)).toMatchObject([{ limits: [{ name: 'rpd', capacity: 0 }] }]);
});

test('an entity that was disabled is paused once: a finished migration does not pause it again', () => {
  const level: ConfigLevel = { kind: 'entity_default', entityId: 'a' };
  const old = { level, hasLimits: true, disabled: true };
  const first = new DisabledLevels();
  first.note(itemOf(old));
  expect(first.entitySettings(NAMESPACES, false)).toEqual([{ ns: NS, entityId: 'a', access: 'disabled' }]);
  const { config, mark } = first.apply(level, itemOf(old), { limits: LIMITS, onUnavailable: null, v: 1 }, [NS]);
  expect(config.limits).toEqual(LIMITS);
  const second = new DisabledLevels();
  second.note({ ...keyItem(buildConfigKey(NS, level)), ...mark });
  expect(second.entitySettings(NAMESPACES, false)).toEqual([]);
  // A run that was killed before it wrote the records of the entities continues.
  expect(second.entitySettings(NAMESPACES, true)).toEqual([{ ns: NS, entityId: 'a', access: 'disabled' }]);
});

test('with bypass dropped, what was bypassed is enforced', () => {
  const old: OldLevel = { level: { kind: 'entity_default', entityId: 'a' }, hasLimits: true, disabled: 'bypass' };
  const levels = new DisabledLevels(new Set(['bypass'] as const));
  levels.note(itemOf(old));
  expect(levels.entitySettings(NAMESPACES, false)).toEqual([]);
  expect(moved([old], levels)).toMatchObject([{ limits: LIMITS, isPaused: false }]);
});
