import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compareVersions, type ConfigLevels, type ConfigVersion, compareConfig, resolveConfig } from './config.js';
import { Limit } from '../limit.js';

const RUNS = { numRuns: 2_000 };

const limits = fc.uniqueArray(
  fc
    .tuple(fc.constantFrom('rpm', 'tpm', 'slots'), fc.integer({ min: 1, max: 3 }), fc.boolean())
    .map(([name, amount, isRate]): Limit =>
      isRate ? Limit.perMinute(name, amount, { cost: amount }) : Limit.concurrent(name, amount),
    ),
  { maxLength: 3, selector: ({ name }) => name },
);
const stored = fc.option(
  fc.record({
    limits: fc.option(limits),
    onUnavailable: fc.option(fc.constantFrom('block' as const, 'allow' as const, 'local' as const)),
    v: fc.integer({ min: 1, max: 20 }),
  }),
  { nil: undefined },
);
const levels: fc.Arbitrary<ConfigLevels> = fc.record({
  entity: stored,
  entityDefault: stored,
  resource: stored,
  system: stored,
});
const code = fc.record({ limits, openedAtMs: fc.integer({ min: 1, max: 5 }) });
const version: fc.Arbitrary<ConfigVersion> = fc.record({
  sequence: fc.nat({ max: 4 }),
  openedAtMs: fc.nat({ max: 4 }),
});

const inOrder = ({ entity, entityDefault, resource, system }: ConfigLevels) =>
  [
    ['entity', entity],
    ['entity_default', entityDefault],
    ['resource', resource],
    ['system', system],
  ] as const;

test('a resolved config has all limits of the first level that has any', () => {
  fc.assert(
    fc.property(levels, code, (of, inCode) => {
      const winner = inOrder(of).find(([, config]) => (config?.limits ?? []).length > 0);
      const resolved = resolveConfig(of, inCode);
      expect(resolved.limits).toBe(winner === undefined ? inCode.limits : winner[1]?.limits);
      const otherwise = inCode.limits.length > 0 ? 'code' : null;
      expect(resolved.configSource).toBe(winner === undefined ? otherwise : winner[0]);
    }),
    RUNS,
  );
});

test('a resolved config has the largest version of its levels, also of deleted ones', () => {
  fc.assert(
    fc.property(levels, code, (of, inCode) => {
      const { version: resolved, configSource } = resolveConfig(of, inCode);
      expect(resolved.sequence).toBe(Math.max(0, ...inOrder(of).map(([, config]) => config?.v ?? 0)));
      const isStored = configSource !== 'code' && configSource !== null;
      expect(resolved.openedAtMs).toBe(isStored ? 0 : inCode.openedAtMs);
    }),
    RUNS,
  );
});

test('deleting a level makes the resolved config newer', () => {
  const system = { limits: [Limit.perMinute('rpm', 1)], onUnavailable: null, v: 1 };
  const entity = { limits: [Limit.perMinute('rpm', 9)], onUnavailable: null, v: 2 };
  const nothing = { limits: [], openedAtMs: 0 };
  const base = { entityDefault: undefined, resource: undefined, system };
  const before = resolveConfig({ ...base, entity }, nothing);
  const after = resolveConfig({ ...base, entity: { ...entity, limits: null, v: 3 } }, nothing);
  expect([before.configSource, after.configSource]).toEqual(['entity', 'system']);
  expect(compareVersions(after.version, before.version)).toBeGreaterThan(0);
});

test('a resolved config has the outage policy of the system level only', () => {
  fc.assert(
    fc.property(levels, code, (of, inCode) => {
      expect(resolveConfig(of, inCode).onUnavailable).toBe(of.system?.onUnavailable ?? null);
    }),
    RUNS,
  );
});

test('versions are ordered by sequence number, then by the time of opening', () => {
  fc.assert(
    fc.property(version, version, (a, b) => {
      const wide = (v: ConfigVersion): number => v.sequence * 1_000 + v.openedAtMs;
      expect(Math.sign(compareVersions(a, b))).toBe(Math.sign(wide(a) - wide(b)));
    }),
    RUNS,
  );
});

const rules = (list: readonly Limit[]): string =>
  list
    .map((limit) => String(limit).replace(/@.*/, ''))
    .toSorted((a, b) => (a < b ? -1 : 1))
    .join(' ');

test('a bucket gets new rules only from a config that is newer and differs', () => {
  fc.assert(
    fc.property(limits, version, limits, version, (has, hasVersion, wants, wantsVersion) => {
      const bucket = { limits: has.map((limit) => ({ limit })), version: hasVersion };
      const differs = rules(has) !== rules(wants);
      const isNewer = compareVersions(wantsVersion, hasVersion) > 0;
      expect(compareConfig(bucket, { limits: wants, version: wantsVersion }) === 'settle').toBe(differs && isNewer);
    }),
    RUNS,
  );
});

test('a bucket changes to each version at most once, in whatever order clients with old and new caches write', () => {
  const configs = fc.array(limits, { minLength: 2, maxLength: 5 });
  // Each client reads the config at random times and otherwise uses its cached copy.
  const turns = fc.array(fc.record({ client: fc.nat({ max: 2 }), reads: fc.boolean(), changes: fc.boolean() }), {
    maxLength: 60,
  });
  fc.assert(
    fc.property(configs, turns, (history, played) => {
      let newest = 0;
      const known = [0, 0, 0];
      const wanted = (at: number) => ({ limits: history[at]!, version: { sequence: at, openedAtMs: 0 } });
      let bucket = wanted(0);
      const applied: number[] = [];
      for (const { client, reads, changes } of played) {
        if (changes && newest < history.length - 1) newest += 1;
        if (reads) known[client] = newest;
        const wants = wanted(known[client]!);
        if (
          compareConfig({ limits: bucket.limits.map((limit) => ({ limit })), version: bucket.version }, wants) !==
          'settle'
        )
          continue;
        bucket = wants;
        applied.push(known[client]!);
      }
      expect(applied).toEqual([...new Set(applied)].toSorted((a, b) => a - b));
    }),
    RUNS,
  );
});

test('a bucket has the rules of the process that opened last when two processes have different limits in code', () => {
  const older = resolveConfig(NOTHING, { limits: [Limit.perMinute('rpm', 3)], openedAtMs: 1 });
  const newer = resolveConfig(NOTHING, { limits: [Limit.perMinute('rpm', 5)], openedAtMs: 2 });
  const living = ({ limits: by, version: of }: typeof older) => ({
    limits: by.map((limit) => ({ limit })),
    version: of,
  });
  expect(compareConfig(living(older), newer)).toBe('settle');
  expect(compareConfig(living(newer), older)).toBe('reread');
});

const NOTHING: ConfigLevels = { entity: undefined, entityDefault: undefined, resource: undefined, system: undefined };
