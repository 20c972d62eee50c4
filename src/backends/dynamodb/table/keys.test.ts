import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ConfigLevel } from '../../../core/config/config.js';
import { buildOwnLimitsResource, checkEntityId, checkResource, parsePlainResource } from '../../../core/identifiers.js';
import { USAGE_WINDOWS } from '../../../core/usage/usage.js';
import {
  buildAuditKey,
  buildConfigKey,
  buildEntityKey,
  buildManagedRecordKey,
  buildNamespaceIdKey,
  buildNamespaceKey,
  buildSequenceKey,
  buildShardKey,
  buildUsageKey,
  buildUsagePrefix,
  index,
  MANAGED_PREFIX,
  parseAuditKey,
  parseConfigKey,
  parseEntityKey,
  parseShardKey,
  parseUsageKey,
  type RecordKey,
  REGISTRY,
  STATE,
  SUFFIXES,
  VERSION_KEY,
} from './keys.js';

const RUNS = { numRuns: 1_000 };

/** Names that look like parts of keys, or that sort before or after everything. */
const TRICKY = [
  '!',
  '"',
  '|',
  ':',
  '/',
  '~',
  '/ENTITY',
  '/RESOURCE',
  'a/BUCKET',
  'x/AUDIT',
  '/SYSTEM',
  'BUCKET',
  '-',
  '0',
];
const legal = (check: (value: unknown) => void) => (name: string) => {
  try {
    check(name);
    return true;
  } catch {
    return false;
  }
};
const namesOf = (characters: string, most: number, check: (value: unknown) => void): fc.Arbitrary<string> =>
  fc.oneof(
    fc.string({ unit: fc.constantFrom(...characters.split('')), minLength: 1, maxLength: most }).filter(legal(check)),
    fc.constantFrom(...TRICKY.filter(legal(check))),
  );
const PRINTABLE = Array.from({ length: 94 }, (_, code) => String.fromCodePoint(33 + code))
  .join('')
  .replace('#', '');
const entityIds = namesOf(PRINTABLE, 256, checkEntityId);
const plainResources = namesOf(PRINTABLE.replace('~', ''), 128, checkResource);
const resources = fc.oneof(
  plainResources,
  fc.tuple(plainResources, fc.string()).map(([name, limits]) => buildOwnLimitsResource(name, limits)),
);
const namespaceIds = fc.stringMatching(/^[A-Za-z0-9_-]{11}$/);
const shards = fc.integer({ min: 0, max: 63 });
const instants = fc.integer({ min: 0, max: 4_000_000_000_000 });
const windows = fc.constantFrom(...USAGE_WINDOWS);
const levels: fc.Arbitrary<ConfigLevel> = fc.oneof(
  fc.record({ kind: fc.constant('entity' as const), entityId: entityIds, resource: plainResources }),
  fc.record({ kind: fc.constant('entity_default' as const), entityId: entityIds }),
  fc.record({ kind: fc.constant('resource' as const), resource: plainResources }),
  fc.constant({ kind: 'system' as const }),
);

const textOf = ({ PK, SK }: RecordKey): string => JSON.stringify([PK, SK]);

describe('keys of records', () => {
  test('the key of a shard can be parsed into its names', () => {
    const key = fc.record({ entityId: entityIds, resource: resources, shard: shards });
    fc.assert(
      fc.property(namespaceIds, key, (ns, shard) => {
        const { PK, SK } = buildShardKey(ns, shard);
        expect(SK).toBe(STATE);
        expect(parseShardKey(PK)).toEqual({ ns, ...shard });
        expect(parseEntityKey(PK)).toBeNull();
        expect(parseConfigKey({ PK, SK })).toBeNull();
      }),
      RUNS,
    );
  });

  test.each([
    '',
    'ns/BUCKET',
    'ns/BUCKET#a#b',
    'ns/BUCKET#a#b#',
    'ns/BUCKET#a#b#x',
    'ns/BUCKET#a#b#1#',
    'ns/ENTITY#a#b#0',
  ])('the key %j is not parsed as the key of a shard', (pk) => {
    expect(parseShardKey(pk)).toBeNull();
  });

  test('the key of an entity can be parsed into its id', () => {
    fc.assert(
      fc.property(namespaceIds, entityIds, (ns, id) => {
        expect(parseEntityKey(buildEntityKey(ns, id).PK)).toBe(id);
      }),
      RUNS,
    );
  });

  test('the key of a config can be parsed into its level', () => {
    fc.assert(
      fc.property(namespaceIds, levels, (ns, level) => {
        expect(parseConfigKey(buildConfigKey(ns, level))).toEqual(level);
      }),
      RUNS,
    );
  });

  test('the key of an audit record can be parsed into its subject and id', () => {
    const subjects = fc.oneof(
      entityIds,
      plainResources.map((name) => `$RESOURCE:${name}`),
      fc.constantFrom('$SYSTEM', '$NAMESPACE:acme'),
    );
    fc.assert(
      fc.property(namespaceIds, subjects, fc.stringMatching(/^[0-9A-Z]{26}$/), (ns, subject, id) => {
        expect(parseAuditKey(buildAuditKey(ns, subject, id))).toEqual({ subject, id });
      }),
      RUNS,
    );
  });

  test('the key of a usage record can be parsed into its entity, resource and window, and sorts by time', () => {
    fc.assert(
      fc.property(
        namespaceIds,
        entityIds,
        plainResources,
        windows,
        instants,
        instants,
        (ns, entityId, resource, window, startMs, otherMs) => {
          const key = buildUsageKey(ns, entityId, resource, window, startMs);
          expect(parseUsageKey(key)).toEqual({ entityId, resource, window, startMs });
          expect(key.SK.startsWith(buildUsagePrefix(resource, window))).toBe(true);
          const other = buildUsageKey(ns, entityId, resource, window, otherMs);
          expect(Math.sign(other.SK < key.SK ? -1 : other.SK > key.SK ? 1 : 0)).toBe(Math.sign(otherMs - startMs));
        },
      ),
      RUNS,
    );
  });

  test('keys of records with different names, kinds or namespaces differ', () => {
    const keys = fc.oneof(
      fc.tuple(fc.constant('shard'), entityIds, resources, shards).map(([kind, entityId, resource, shard]) => ({
        what: [kind, entityId, resource, shard],
        key: (ns: string) => buildShardKey(ns, { entityId, resource, shard }),
      })),
      fc
        .tuple(fc.constant('entity'), entityIds)
        .map((what) => ({ what, key: (ns: string) => buildEntityKey(ns, what[1]) })),
      levels.map((level) => ({ what: ['config', level], key: (ns: string) => buildConfigKey(ns, level) })),
      fc.tuple(fc.constant('usage'), entityIds, plainResources, windows, instants).map((what) => ({
        what,
        key: (ns: string) => buildUsageKey(ns, what[1], what[2], what[3], what[4]),
      })),
      fc
        .tuple(fc.constant('managed'), fc.string())
        .map((what) => ({ what, key: (ns: string) => buildManagedRecordKey(ns, what[1]) })),
      fc.tuple(fc.constant('audit'), entityIds, fc.string()).map((what) => ({
        what,
        key: (ns: string) => buildAuditKey(ns, what[1], what[2]),
      })),
      fc.constant({ what: ['sequence'], key: buildSequenceKey }),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(namespaceIds, keys), { minLength: 2, maxLength: 12 }), (drawn) => {
        const whats = new Set(drawn.map(([ns, { what }]) => JSON.stringify([ns, what])));
        const built = new Set(drawn.map(([ns, { key }]) => textOf(key(ns))));
        expect(built.size).toBe(whats.size);
      }),
      RUNS,
    );
  });

  test('keys of the registry belong to no namespace', () => {
    const registry = [VERSION_KEY, buildNamespaceKey('acme'), buildNamespaceIdKey('AAAAAAAAAA0')];
    expect(new Set(registry.map(textOf)).size).toBe(3);
    for (const { PK } of registry) expect(PK.startsWith(`${REGISTRY}/`)).toBe(true);
    expect(buildNamespaceKey('a').SK).not.toBe(buildNamespaceIdKey('a').SK);
    expect(buildManagedRecordKey('ns', 'k').SK).toBe(`${MANAGED_PREFIX}k`);
  });
});

describe('keys of indexes', () => {
  const distinct = <T>(values: fc.Arbitrary<T>, build: (value: T) => string): void => {
    fc.assert(
      fc.property(
        fc.uniqueArray(values, { minLength: 2, maxLength: 12, selector: (value) => JSON.stringify(value) }),
        (drawn) => {
          expect(new Set(drawn.map(build)).size).toBe(drawn.length);
        },
      ),
      RUNS,
    );
  };

  test('index keys of different records differ', () => {
    distinct(fc.tuple(entityIds, resources, shards), (names) => index.bucketOfResource(...names));
    distinct(fc.tuple(resources, shards), (names) => index.bucketOfEntity(...names));
    distinct(fc.tuple(windows, instants, entityIds), (names) => index.usageOfResource(...names));
    distinct(levels, (level) => index.config('ns', buildConfigKey('ns', level)));
    distinct(fc.tuple(entityIds, plainResources, windows, instants), (names) =>
      index.usage('ns', buildUsageKey('ns', ...names)),
    );
  });

  test('index keys of different kinds share no partition', () => {
    fc.assert(
      fc.property(namespaceIds, entityIds, plainResources, (ns, id, resource) => {
        const first = new Set([index.children(ns, id), index.children(ns, resource), index.sweep(ns)]);
        expect(first.size).toBe(id === resource ? 2 : 3);
        const third = new Set([index.entityConfigs(ns, resource), index.bucketsOfEntity(ns, id)]);
        expect(third.size).toBe(2);
      }),
      RUNS,
    );
  });

  test('index keys spread entities over 16 partitions, each entity always in the same one', () => {
    const used = new Map<string, number>();
    for (let at = 0; at < 1_600; at++) {
      const key = index.resourceOf('ns', 'gpt-4', `user-${at}`);
      expect(key).toBe(index.resourceOf('ns', 'gpt-4', `user-${at}`));
      used.set(key, (used.get(key) ?? 0) + 1);
    }
    expect([...used.keys()].toSorted()).toEqual(SUFFIXES.map((suffix) => index.resource('ns', 'gpt-4', suffix)));
    // Even within a third of the mean, which is enough to spread the load.
    for (const count of used.values()) expect(Math.abs(count - 100)).toBeLessThan(34);
    expect(SUFFIXES.map((suffix) => index.all('ns', suffix))).toContain(index.allOf('ns', 'user-1'));
  });

  test('a bucket of per-call limits is indexed under the plain name of its resource', () => {
    fc.assert(
      fc.property(plainResources, fc.string(), (resource, limits) => {
        expect(parsePlainResource(buildOwnLimitsResource(resource, limits))).toBe(resource);
      }),
      RUNS,
    );
  });
});
