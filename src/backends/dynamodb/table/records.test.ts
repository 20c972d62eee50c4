import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AuditRecord, EntityRecord, NamespaceRecord, UsageRecord } from '../../../backend.js';
import type { ConfigLevel, StoredConfig } from '../../../core/config/config.js';
import { isHeadgateError } from '../../../core/errors.js';
import type { Int } from '../../../core/int.js';
import { Limit } from '../../../core/limit.js';
import { USAGE_WINDOWS, usageLifeMs, windowEnd, windowStart } from '../../../core/usage/usage.js';
import { readKey } from './attributes.js';
import { buildUsageKey, parseConfigKey } from './keys.js';
import {
  decodeAudit,
  decodeConfig,
  decodeConfigWrites,
  decodeEntity,
  decodeManaged,
  decodeNamespace,
  decodeSequence,
  decodeUsage,
  encodeAudit,
  encodeConfig,
  encodeEntity,
  encodeManaged,
  encodeNamespace,
  encodeSequence,
  encodeUsage,
} from './records.js';
import type { Item } from '../client/transport.js';

const NS = 'AAAAAAAAAA0';

/** Valid by `core/identifiers.ts`; some look like parts of a key. */
const entityId = fc.oneof(
  fc.stringMatching(/^[!-"%-~][!-"$-~]{0,20}$/),
  fc.constantFrom('a/ENTITY', '_/AUDIT', 'x/BUCKET'),
);
const resource = fc.oneof(fc.stringMatching(/^[!-"%-^a-}][!-"$-}]{0,20}$/), fc.constantFrom('a/ENTITY', 'x/CONFIG'));
const limitName = fc.oneof(
  fc.stringMatching(/^[A-Za-z][A-Za-z0-9_.-]{0,20}$/),
  fc.constantFrom('a_cp', 'a', 'l_a_cp', 'a.b-c_rp', 'a_cost'),
);
const amount = fc.integer({ min: 1, max: 1e12 });
const instant = fc.integer({ min: 0, max: 4_000_000_000_000 });
const plain = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as unknown);
const plainObject = fc
  .dictionary(fc.string(), plain)
  .map((value) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>);

const limit = fc.oneof(
  fc
    .record({
      name: limitName,
      capacity: amount,
      refillAmount: amount,
      refillPeriodMs: fc.integer({ min: 1, max: 1e9 }),
    })
    .map(({ name, ...rule }) => Limit.custom(name, rule)),
  fc.tuple(limitName, amount, amount).map(([name, capacity, cost]) => Limit.concurrent(name, capacity, { cost })),
  limitName.map((name) => Limit.perMinute(name, 0)),
  fc.tuple(limitName, amount).map(([name, cost]) => Limit.unlimited(name, { cost })),
  limitName.map((name) => Limit.unlimited(name)),
);
const limits = fc.uniqueArray(limit, { selector: ({ name }) => name, minLength: 1, maxLength: 8 });
const level: fc.Arbitrary<ConfigLevel> = fc.oneof(
  fc.record({ kind: fc.constant('entity' as const), entityId, resource }),
  fc.record({ kind: fc.constant('entity_default' as const), entityId }),
  fc.record({ kind: fc.constant('resource' as const), resource }),
  fc.constant({ kind: 'system' as const }),
);
const config: fc.Arbitrary<StoredConfig> = fc.record({
  limits: fc.option(limits, { nil: null }),
  onUnavailable: fc.constantFrom(null, 'allow' as const, 'local' as const),
  v: fc.integer({ min: 1, max: 1e9 }),
});

/** The value after a round trip through JSON, which drops what JSON cannot represent. */
function travelled(item: Item): Item {
  return JSON.parse(JSON.stringify(item)) as Item;
}

describe('stored configs', () => {
  test('a config is decoded as it was encoded, with the order of its limits, and its key contains its level', () => {
    fc.assert(
      fc.property(level, config, fc.integer({ min: 1, max: 999 }), (of, stored, writes) => {
        const item = travelled(encodeConfig(NS, of, stored, writes));
        expect(decodeConfig(item)).toEqual(stored);
        expect(decodeConfigWrites(item)).toBe(writes);
        expect(parseConfigKey(readKey(item))).toEqual(of);
      }),
    );
  });

  test('a config is indexed under its resource only if it has limits of an entity', () => {
    fc.assert(
      fc.property(level, config, (of, stored) => {
        const listed = encodeConfig(NS, of, stored, 1)['GSI3PK'] !== undefined;
        expect(listed).toBe(of.kind === 'entity' && stored.limits !== null);
      }),
    );
  });

  test('a config is decoded without a limit of which a number is missing', () => {
    const item = encodeConfig(
      NS,
      { kind: 'system' },
      { limits: [Limit.perMinute('rpm', 1)], onUnavailable: null, v: 1 },
      1,
    );
    for (const number of ['l_rpm_cp', 'l_rpm_ra', 'l_rpm_rp']) {
      const { [number]: _missing, ...rest } = item;
      expect(decodeConfig(rest).limits).toBeNull();
    }
  });
});

test('a sequence is decoded as it was encoded', () => {
  expect(decodeSequence(encodeSequence(NS, 42))).toBe(42);
  expect(() => decodeSequence({})).toThrow('has no attribute v');
});

const entity: fc.Arbitrary<EntityRecord> = fc.record({
  id: entityId,
  name: fc.option(fc.string(), { nil: null }),
  parentId: fc.option(entityId, { nil: null }),
  cascade: fc.boolean(),
  metadata: plainObject,
  createdAtMs: instant,
  version: fc.integer({ min: 1, max: 1e9 }),
});

describe('entities', () => {
  test('an entity is decoded as it was encoded, with any metadata', () => {
    fc.assert(
      fc.property(entity, (given) => {
        expect(decodeEntity(travelled(encodeEntity(NS, given)))).toEqual(given);
      }),
    );
  });

  test('an entity with more metadata than its audit record could hold is refused', () => {
    const [given] = fc.sample(entity, 1);
    const metadata = { text: 'é'.repeat(70_000) };
    const refused = (() => {
      try {
        return encodeEntity(NS, { ...given!, metadata });
      } catch (error) {
        return error;
      }
    })();
    expect(isHeadgateError(refused, 'input.invalid')).toBe(true);
  });
});

const namespace: fc.Arbitrary<NamespaceRecord> = fc.record({
  id: fc.stringMatching(/^[A-Za-z0-9_-]{11}$/),
  name: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,20}$/),
  status: fc.constantFrom('active', 'deleted', 'purging'),
  createdAtMs: instant,
});

test('a namespace is decoded as it was encoded, under its id and under its name', () => {
  fc.assert(
    fc.property(namespace, instant, (given, sinceMs) => {
      for (const under of ['id', 'name'] as const) {
        expect(decodeNamespace(travelled(encodeNamespace(under, given, sinceMs)))).toEqual(given);
      }
    }),
  );
});

const audit: fc.Arbitrary<AuditRecord> = fc.record({
  id: fc.stringMatching(/^[0-9A-Z]{26}$/),
  atMs: instant,
  principal: fc.option(fc.string(), { nil: null }),
  action: fc.constantFrom('entity.create', 'config.set', 'bucket.reset'),
  subject: fc.oneof(
    entityId,
    fc.constant('$SYSTEM'),
    resource.map((name) => `$RESOURCE:${name}`),
  ),
  before: plain,
  after: plain,
});

describe('audit records', () => {
  test('an audit record is decoded as it was encoded', () => {
    fc.assert(
      fc.property(audit, fc.constantFrom(NS, '_'), (given, ns) => {
        expect(decodeAudit(travelled(encodeAudit(ns, given)))).toEqual(given);
      }),
    );
  });

  test('an audit record of the registry is in no index, because they are never listed together', () => {
    const [given] = fc.sample(audit, 1);
    expect(Object.keys(encodeAudit('_', given!)).filter((name) => name.startsWith('GSI'))).toEqual([]);
  });
});

test('a mark of a limits file is decoded as it was encoded', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z_]+(#[!-~]{1,9}){0,2}$/), plainObject, (key, value) => {
      expect(decodeManaged(travelled(encodeManaged(NS, key, value)))).toEqual({ key, value });
    }),
  );
});

const milli: fc.Arbitrary<Int> = fc.oneof(
  fc.maxSafeInteger(),
  fc.bigInt({ min: 2n ** 60n, max: 2n ** 90n }),
  fc.bigInt({ min: -(2n ** 90n), max: -(2n ** 60n) }),
);
const usage: fc.Arbitrary<UsageRecord> = fc
  .record({
    entityId,
    resource,
    window: fc.constantFrom(...USAGE_WINDOWS),
    atMs: instant,
    consumed: fc.dictionary(limitName, milli),
    acquires: fc.nat(),
    expired: fc.nat(),
  })
  .map(({ atMs, consumed, ...rest }) => ({
    ...rest,
    startMs: windowStart(rest.window, atMs),
    consumedMilli: new Map(Object.entries(consumed)),
  }));

describe('usage records', () => {
  test('a usage record is decoded as it was encoded, also beyond 2^53', () => {
    fc.assert(
      fc.property(usage, (given) => {
        expect(decodeUsage(travelled(encodeUsage(NS, given)))).toEqual(given);
      }),
    );
  });

  test('a usage record is kept at least as long as it is shown, and a month as long as its days', () => {
    fc.assert(
      fc.property(usage, (given) => {
        const { ttl } = encodeUsage(NS, given);
        const endMs = windowEnd(given.window, given.startMs);
        expect(Number(ttl?.N) * 1_000).toBeGreaterThanOrEqual(endMs + usageLifeMs(given.window));
        const month = { ...given, window: 'monthly' as const, startMs: windowStart('monthly', given.startMs) };
        expect(Number(encodeUsage(NS, month)['ttl']?.N)).toBeGreaterThanOrEqual(Number(ttl?.N));
      }),
    );
  });

  test('usage records of an entity sort by time', () => {
    fc.assert(
      fc.property(instant, instant, (a, b) => {
        const [early, late] = [Math.min(a, b), Math.max(a, b)].map(
          (ms) => buildUsageKey(NS, 'e', 'r', 'hourly', ms).SK,
        );
        expect(early! <= late!).toBe(true);
      }),
    );
  });
});
