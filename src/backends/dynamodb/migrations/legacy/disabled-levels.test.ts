import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ConfigLevel, StoredConfig } from '../../../../core/config/config.js';
import { Limit } from '../../../../core/limit.js';
import { buildConfigKey, keyItem } from '../../table/keys.js';
import type { Item } from '../../client/transport.js';
import { DisabledLevels } from './disabled-levels.js';
import { Unmappable } from '../unmappable.js';

const NS = 'ns';
const ENTITIES = ['a', 'b'];
const RESOURCES = ['r', 's'];
const LIMITS = [Limit.perDay('rpd', 9)];

interface OldLevel {
  readonly level: ConfigLevel;
  readonly hasLimits: boolean;
  readonly disabled: boolean | undefined;
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
  ...(disabled === undefined ? {} : { disabled: { BOOL: disabled } }),
});
const same = (a: ConfigLevel, b: ConfigLevel): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Every level of a table after the migration; null: one of them is refused. */
function moved(olds: readonly OldLevel[], levels: DisabledLevels): readonly (OldLevel & { limits: unknown })[] | null {
  try {
    return olds.map((old) => {
      const config: StoredConfig = { limits: old.hasLimits ? LIMITS : null, onUnavailable: null, v: 1 };
      return { ...old, limits: levels.apply(old.level, itemOf(old), config, [NS]).config.limits };
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
      disabled: fc.constantFrom(true, false, undefined),
    }),
    { maxLength: LEVELS.length },
  )
  .map((olds) => olds.filter(({ level }, at) => olds.findIndex((old) => same(old.level, level)) === at))
  .map((olds) => olds.map((old) => (old.level.kind === 'system' ? { ...old, disabled: undefined } : old)));

test('the winning level refuses exactly what was disabled', () => {
  let judged = 0;
  fc.assert(
    fc.property(tables, (olds) => {
      const levels = new DisabledLevels();
      for (const old of olds) levels.note(itemOf(old));
      const news = moved(olds, levels);
      if (news === null) return;
      for (const [entityId, resource] of ENTITIES.flatMap((id) => RESOURCES.map((name) => [id, name] as const))) {
        const chain = chainOf(entityId, resource);
        const flags = chain.map((level) => olds.find((old) => same(old.level, level))?.disabled);
        const wasDisabled = flags.find((flag) => flag !== undefined) ?? false;
        const winner = [...chain, SYSTEM]
          .map((level) => news.find((found) => same(found.level, level))?.limits as readonly Limit[] | null | undefined)
          .find((limits) => limits !== null && limits !== undefined);
        const isRefused = winner !== undefined && winner.every(({ capacity, cost }) => capacity === 0 && cost === 1);
        expect(isRefused).toBe(wasDisabled);
        judged += 1;
      }
    }),
    { numRuns: 500 },
  );
  expect(judged).toBeGreaterThan(200);
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
