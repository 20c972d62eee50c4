import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDynamoDBBackend } from '../../src/backends/dynamodb/dynamodb.js';
import { createTable } from '../../src/backends/dynamodb/index.js';
import {
  type MigrateOptions,
  type MigrationReport,
  runMigrations,
} from '../../src/backends/dynamodb/migrations/run.js';
import type { DroppableSetting } from '../../src/backends/dynamodb/migrations/legacy/settings.js';
import type { AttributeValue, Item } from '../../src/backends/dynamodb/client/transport.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { fakeClock } from '../../src/testing/fake-clock.js';
import { ENGINE } from '../support/dynamodb/world.js';
import { OLD_NAMESPACE } from '../support/migration/legacy-tables.js';
import { keyOf, LegacyWorld } from '../support/migration/legacy-world.js';

const NOW_MS = Date.UTC(2026, 5, 15, 12, 30);
const NS = `${OLD_NAMESPACE}/`;

const recordOf = (PK: string, SK: string, fields: Readonly<Record<string, number | AttributeValue>> = {}): Item => ({
  PK: { S: PK },
  SK: { S: SK },
  ...Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === 'number' ? { N: String(value) } : value]),
  ),
});
const REGISTRY: readonly Item[] = [
  ['#NAMESPACE#default', OLD_NAMESPACE],
  [`#NSID#${OLD_NAMESPACE}`, OLD_NAMESPACE],
].map(([sk = '', id = '']) =>
  recordOf('_/SYSTEM#', sk, {
    namespace_id: { S: id },
    namespace_name: { S: 'default' },
    status: { S: 'active' },
    created_at: { S: '2026-01-01T00:00:00Z' },
  }),
);
const RULE = { l_rpd_cp: 9, l_rpd_ra: 9, l_rpd_rp: 86_400, config_version: 1 };
const ofResource = (ns: string, resource: string, fields: Parameters<typeof recordOf>[2] = RULE): Item =>
  recordOf(`${ns}RESOURCE#${resource}`, '#CONFIG', fields);
const entityOf = (ns: string, id: string, name = id): Item =>
  recordOf(`${ns}ENTITY#${id}`, '#META', { name: { S: name }, created_at: { S: '2026-01-01T00:00:00Z' } });
const bucketOf = (ns: string, id: string, tokens: number): Item =>
  recordOf(`${ns}BUCKET#${id}#gpt-4#0`, '#STATE', {
    rf: NOW_MS,
    shard_count: 1,
    b_rpd_tk: tokens,
    b_rpd_cp: 9_000,
    b_rpd_ra: 9_000,
    b_rpd_rp: 86_400_000,
    b_rpd_tc: 9_000 - tokens,
  });

describe.skipIf(ENGINE.missing)(`old records without a counterpart${ENGINE.note}`, () => {
  let world: LegacyWorld;

  beforeAll(async () => {
    world = await LegacyWorld.start();
  });
  afterAll(async () => world?.stop());

  const migrate = async (tableName: string, more: Partial<MigrateOptions> = {}): Promise<MigrationReport> =>
    runMigrations({ tableName, ...world.reach, ...more });
  const open = async (table: string): Promise<RateLimiter> =>
    RateLimiter.open(createDynamoDBBackend({ table, ...world.reach }), { clock: fakeClock(NOW_MS) });
  /** Expects the migration to reject with the reason, and not to change the table. */
  const expectRefused = async (name: string, reason: string): Promise<void> => {
    const before = await world.dump(name);
    const error = await migrate(name).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: 'infrastructure.migration', message: expect.stringContaining(reason) });
    expect(await world.dump(name)).toEqual(before);
  };

  test('a damaged record of v0.9 refuses the migration, and with `leave` only its own bucket is refused', async () => {
    const { b_rpd_ra: _, ...damaged } = bucketOf(NS, 'bad', 5_000);
    const { name } = await world.table([...REGISTRY, ofResource(NS, 'gpt-4'), damaged, bucketOf(NS, 'good', 4_000)]);
    await expectRefused(name, 'it has no b_rpd_ra');
    expect(await migrate(name, { leave: true })).toMatchObject({ to: 2, migrations: [{ removed: 4, left: 1 }] });
    // As `headgate upgrade` asks. The operator has decided about this record: it must not block every later upgrade.
    expect(await migrate(name, { raise: false })).toMatchObject({ from: 2, to: 2, migrations: [{ left: 1 }] });
    await using limiter = await open(name);
    expect(await limiter.available({ entityId: 'good', resource: 'gpt-4' })).toEqual({ rpd: 4 });
    const bad = { entityId: 'bad', resource: 'gpt-4', consume: { rpd: 1 } };
    await expect(limiter.acquire(bad)).rejects.toMatchObject({ code: 'schema.mismatch' });
    await world.put(name, [bucketOf(NS, 'bad', 5_000)]);
    expect(await migrate(name)).toMatchObject({ from: 2, to: 2, migrations: [{ found: 1, removed: 1 }] });
    expect(await limiter.available({ entityId: 'bad', resource: 'gpt-4' })).toEqual({ rpd: 5 });
  });

  test.each([
    ['an entity', entityOf('', 'a#b')],
    ['an entity in a namespace', entityOf(NS, 'a#b')],
    ['a bucket', bucketOf(NS, 'a#b', 9_000)],
    ['a resource', ofResource('', 'a#b')],
    ['usage of a resource', recordOf('ENTITY#u', '#USAGE#a#b#2026-01-01T00:00:00Z')],
    ['audit of an entity', recordOf('AUDIT#a#b', '#AUDIT#01J')],
  ])('a "#" in the name of %s refuses the migration', async (_, item) => {
    const { name } = await world.table([...REGISTRY, item]);
    await expectRefused(name, `${keyOf(item)}: one of its names contains "#"`);
    expect((await migrate(name, { leave: true })).migrations.reduce((sum, { left }) => sum + left, 0)).toBe(1);
  });

  test.each<[DroppableSetting, Item, string | null]>([
    ['schedules', ofResource(NS, 'r', { ...RULE, l_rpd_sched: { S: '1:x' }, sched_tz: { S: 'UTC' } }), 'rpd:9/day'],
    [
      'quotas',
      ofResource(NS, 'r', { ...RULE, l_q_cp: 5, l_q_ra: 0, l_q_rp: 1, l_q_rsched: { S: '1:x' } }),
      'rpd:9/day',
    ],
    ['sessions', ofResource(NS, 'r', { w_chat_cp: 5, w_chat_ra: 0, w_chat_rp: 1, w_chat_rsa: 60 }), null],
    ['cascade', ofResource(NS, 'r', { ...RULE, cascade: { BOOL: false } }), 'rpd:9/day'],
  ])('the setting %s is counted and refused, and can be dropped by name', async (setting, item, left) => {
    const { name } = await world.table([...REGISTRY, item]);
    const expected = { setting, records: 1, treatment: 'refused' };
    expect(await migrate(name, { dryRun: true })).toMatchObject({ settings: [expected], migrations: [{ left: 1 }] });
    await expectRefused(name, `--drop ${setting}`);
    const report = await migrate(name, { drop: [setting] });
    expect(report).toMatchObject({
      to: 2,
      settings: [{ ...expected, treatment: 'dropped' }],
      migrations: [{ left: 0 }],
    });
    await using limiter = await open(name);
    expect((await limiter.config.get({ resource: 'r' }))?.limits?.map(String).join() ?? null).toBe(left);
  });

  test.each<[DroppableSetting, Item]>([
    ['bypass', ofResource(NS, 'r', { ...RULE, disabled: { S: 'bypass' } })],
    ['soft', ofResource(NS, 'r', { ...RULE, l_rpd_soft: { BOOL: true } })],
  ])('the setting %s makes the limits shadows, and they are enforced if it is dropped', async (setting, item) => {
    for (const [drop, treatment, text] of [
      [[], 'converted', 'rpd:9/day!shadow'],
      [[setting], 'dropped', 'rpd:9/day'],
    ] as const) {
      const { name } = await world.table([...REGISTRY, item]);
      const report = await migrate(name, { drop });
      expect(report).toMatchObject({ settings: [{ setting, records: 1, treatment }], migrations: [{ left: 0 }] });
      await using limiter = await open(name);
      expect((await limiter.config.get({ resource: 'r' }))?.limits?.map(String)).toEqual([text]);
    }
  });

  test('a bypass of limits that another level has refuses the migration', async () => {
    const { name } = await world.table([...REGISTRY, ofResource(NS, 'r', { disabled: { S: 'bypass' } })]);
    await expectRefused(name, 'it bypasses limits of another level');
  });

  test('a bucket keeps the counter of a dropped session limit, and its other limits', async () => {
    const chat = { b_chat_tk: 4_000, b_chat_cp: 5_000, b_chat_ra: 0, b_chat_rp: 1, b_chat_tc: 1_000, b_chat_rsa: 60 };
    const item = {
      ...bucketOf(NS, 'u', 4_000),
      ...recordOf('', '', chat),
      ...recordOf(`${NS}BUCKET#u#gpt-4#0`, '#STATE'),
    };
    const { name } = await world.table([...REGISTRY, ofResource(NS, 'gpt-4'), item]);
    await expectRefused(name, '--drop sessions');
    await migrate(name, { drop: ['sessions'] });
    await using limiter = await open(name);
    expect(await limiter.available({ entityId: 'u', resource: 'gpt-4' })).toEqual({ rpd: 4 });
    const bucket = (await world.dump(name)).find((found) => keyOf(found) === keyOf(item));
    expect(bucket).toMatchObject({ b_chat_tc: { N: '1000' } });
    expect(bucket).not.toHaveProperty('b_chat_tk');
  });

  test('an unknown setting cannot be dropped', async () => {
    const drop = ['hard'] as unknown as DroppableSetting[];
    await expect(migrate('any', { drop })).rejects.toMatchObject({ code: 'input.invalid' });
  });

  describe('an unregistered namespace with the name of a registered one', () => {
    test('an unregistered namespace is merged into the registered one, and a bucket of both loses what either lacked', async () => {
      const { name } = await world.table([
        ...REGISTRY,
        ofResource('default/', 'gpt-4'),
        bucketOf('default/', 'u', 7_000),
        bucketOf(NS, 'u', 8_000),
        entityOf('default/', 'u'),
      ]);
      const report = await migrate(name);
      expect(report.migrations).toMatchObject([
        { id: '0001', left: 0 },
        { id: '0004', found: 3, removed: 3, left: 0, strict: 1 },
      ]);
      await using limiter = await open(name);
      expect(await limiter.available({ entityId: 'u', resource: 'gpt-4' })).toEqual({ rpd: 6 });
      expect(await limiter.entities.get('u')).toMatchObject({ id: 'u' });
    });

    test.each([
      ['an entity', entityOf(NS, 'u', 'one'), entityOf('default/', 'u', 'another')],
      ['an entity without a namespace', entityOf('', 'u', 'one'), entityOf('default/', 'u', 'another')],
      ['a level with limits', ofResource(NS, 'r'), ofResource('default/', 'r', { ...RULE, l_rpd_cp: 8 })],
      [
        'a level with limits of two layouts',
        ofResource('', 'r'),
        recordOf('RESOURCE#r', '#LIMIT#rpd', { capacity: 8, refill_period_seconds: 60 }),
      ],
    ])('%s that differs between the two is found before anything is written', async (_, one, another) => {
      const { name } = await world.table([...REGISTRY, one, another]);
      await expectRefused(name, 'a different record exists already');
    });
  });

  test('a table that only the old constructor used is not ready before it is migrated', async () => {
    const { name } = await world.table([bucketOf('default/', 'u', 7_000), ofResource('default/', 'gpt-4')]);
    await expect(createTable({ tableName: name, ...world.reach })).rejects.toMatchObject({ code: 'schema.mismatch' });
    expect(await migrate(name)).toMatchObject({ migrations: [{ id: '0004', found: 2, written: 2, removed: 2 }] });
    await createTable({ table: name, ...world.reach });
    await using limiter = await RateLimiter.open(createDynamoDBBackend({ tableName: name, ...world.reach }), {
      clock: fakeClock(NOW_MS),
    });
    expect(await limiter.available({ entityId: 'u', resource: 'gpt-4' })).toEqual({ rpd: 7 });
  });
});
