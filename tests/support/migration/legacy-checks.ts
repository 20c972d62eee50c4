import { expect } from 'vitest';
import { createDynamoDBBackend } from '../../../src/backends/dynamodb/dynamodb.js';
import { parseConfigKey } from '../../../src/backends/dynamodb/table/keys.js';
import { readOldRecord } from '../../../src/backends/dynamodb/schema/old-record.js';
import {
  decodeAudit,
  decodeChildren,
  decodeConfig,
  decodeEntity,
  decodeUsage,
} from '../../../src/backends/dynamodb/table/records.js';
import type { Item } from '../../../src/backends/dynamodb/client/transport.js';
import { credit, effectiveTokens } from '../../../src/core/bucket/bucket.js';
import { wholeTokens } from '../../../src/core/bucket/decide.js';
import { Limit } from '../../../src/core/limit.js';
import { decodeStrictly } from '../../../src/backends/dynamodb/reconciler/strict-shard.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { fakeClock } from '../../../src/testing/fake-clock.js';
import type { LegacyTable } from './legacy-tables.js';
import type { LegacyWorld } from './legacy-world.js';

/** Pairs of entity and resource that are read through a limiter. The records of all others are compared directly. */
const MEASURED = 10;

/** The new table has all data of the old one, and no old record is left. */
export async function expectMigrated(world: LegacyWorld, name: string, legacy: LegacyTable): Promise<void> {
  const items = await world.dump(name);
  expect(items.filter((item) => readOldRecord(item) !== null && item['SK']?.S !== '#VERSION')).toEqual([]);
  const ofKind = (sortKey: RegExp): readonly Item[] =>
    items.filter(({ PK, SK }) => sortKey.test(SK?.S ?? '') && !PK?.S?.startsWith('_/'));
  expectBuckets(ofKind(/^#STATE$/), legacy);
  expectEntities(ofKind(/^#META$/), legacy);
  expect(configsOf(ofKind(/^#CONFIG/))).toEqual(
    new Map([...legacy.configs].map(([key, limits]) => [key, parsed(limits)])),
  );
  expect(usageOf(ofKind(/^#USAGE/))).toEqual(legacy.usage);
  expect(ofKind(/^#AUDIT/).map(decodeAudit)).toHaveLength(legacy.audits);
  await expectAvailable(world, name, legacy);
}

function expectBuckets(items: readonly Item[], { nowMs, left, consumed }: LegacyTable): void {
  const found = new Map<string, bigint>();
  const counted = new Map<string, bigint>();
  for (const item of items) {
    // This version writes only buckets that the reconciler can read.
    const { key, limits, baseMs } = decodeStrictly(item);
    for (const { limit, rate, tokensMilli, consumedMilli } of limits) {
      const name = `${key.entityId} ${key.resource} ${limit.name}`;
      found.set(name, BigInt(effectiveTokens(rate, tokensMilli, credit(rate, baseMs, nowMs))));
      counted.set(name, BigInt(consumedMilli));
    }
  }
  expect(found).toEqual(left);
  expect(counted).toEqual(consumed);
}

function expectEntities(items: readonly Item[], { entities }: LegacyTable): void {
  const children = new Map<string, number>();
  for (const { parentId } of entities.values()) {
    if (parentId !== null) children.set(parentId, (children.get(parentId) ?? 0) + 1);
  }
  const found = items.map((item) => {
    const { id, parentId, cascade, metadata, name } = decodeEntity(item);
    const number = Number(id.slice('user-'.length));
    expect({ metadata, name }).toEqual({
      metadata: { tier: 'gold', n: number, deep: [true, null] },
      name: `User ${number}`,
    });
    expect(decodeChildren(item)).toBe(children.get(id) ?? 0);
    return [id, { parentId, cascade }] as const;
  });
  expect(new Map(found)).toEqual(entities);
}

function configsOf(items: readonly Item[]): ReadonlyMap<string, readonly string[]> {
  const configs = items.map((item) => {
    const level = parseConfigKey({ PK: item['PK']?.S ?? '', SK: item['SK']?.S ?? '' });
    const entity = level !== null && 'entityId' in level ? level.entityId : '*';
    const resource =
      level?.kind === 'entity_default' ? '_default_' : level !== null && 'resource' in level ? level.resource : '*';
    return [`${entity} ${resource}`, (decodeConfig(item).limits ?? []).map(String)] as const;
  });
  return new Map(configs);
}

function parsed(limits: readonly string[]): readonly string[] {
  return limits.map((limit) => String(Limit.parse(limit))).toSorted();
}

function usageOf(items: readonly Item[]): ReadonlyMap<string, Readonly<Record<string, number>>> {
  const usage = items.map((item) => {
    const { entityId, resource, window, startMs, consumedMilli, acquires } = decodeUsage(item);
    const tokens = Object.fromEntries([...consumedMilli].map(([limit, milli]) => [limit, wholeTokens(milli)]));
    const name = `${entityId} ${resource} ${window} ${new Date(startMs).toISOString()}`;
    return [name, { ...tokens, total_events: acquires }] as const;
  });
  return new Map(usage);
}

/** Some buckets as a client reads them. One request for each bucket would take longer than the migration. */
async function expectAvailable(world: LegacyWorld, name: string, legacy: LegacyTable): Promise<void> {
  const clock = fakeClock(legacy.nowMs);
  await using limiter = await RateLimiter.open(createDynamoDBBackend({ table: name, ...world.reach }), { clock });
  const pairs = [...new Set([...legacy.left.keys()].map((key) => key.split(' ').slice(0, 2).join(' ')))]
    .filter((pair) => legacy.entities.get(pair.split(' ')[0] ?? '')?.cascade !== true)
    .filter((pair) => !legacy.configs.has(`${pair.split(' ')[0]} _default_`));
  for (const pair of pairs.filter((_, at) => at % Math.ceil(pairs.length / MEASURED) === 0)) {
    const [entityId = '', resource = ''] = pair.split(' ');
    const expected = [...legacy.left]
      .filter(([key]) => key.startsWith(`${pair} `))
      .map(([key, milli]) => [key.split(' ')[2], Number(floored(milli))] as const);
    expect(await limiter.available({ entityId, resource })).toEqual(Object.fromEntries(expected));
  }
}

/** Whole tokens, also of a debt. */
function floored(milli: bigint): bigint {
  return BigInt(wholeTokens(milli));
}
