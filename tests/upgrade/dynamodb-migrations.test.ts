import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createTable } from '../../src/backends/dynamodb/index.js';
import { createDynamoDBBackend } from '../../src/backends/dynamodb/dynamodb.js';
import { MIGRATIONS } from '../../src/backends/dynamodb/migrations/registry.js';
import {
  type MigrateOptions,
  type MigrationReport,
  runMigrations,
} from '../../src/backends/dynamodb/migrations/run.js';
import type { Item } from '../../src/backends/dynamodb/client/transport.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { fakeClock } from '../../src/testing/fake-clock.js';
import type { DynamoRequest } from '../../src/testing/dynamodb/dynamo-request.js';
import { fault, type FaultProxy, startFaultProxy } from '../../src/testing/dynamodb/index.js';
import { permissionsOf } from '../support/dynamodb/permissions.js';
import { ENGINE } from '../support/dynamodb/world.js';
import { expectMigrated } from '../support/migration/legacy-checks.js';
import { LAYOUTS, type LegacyLayout, legacyTable, OLD_NAMESPACE } from '../support/migration/legacy-tables.js';
import { keyOf, LegacyWorld } from '../support/migration/legacy-world.js';

const PAGE = readFileSync(new URL('../../docs/backends/dynamodb.md', import.meta.url), 'utf8');
const NOW_MS = Date.UTC(2026, 5, 15, 12, 30);
const COUNT = 40;

const numbers = (fields: Readonly<Record<string, number>>): Item =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, { N: String(value) }]));

const composite = (tokens: number, consumed: number): Item => ({
  PK: { S: 'ENTITY#u' },
  SK: { S: '#BUCKET#gpt-4' },
  ...numbers({
    rf: NOW_MS,
    b_rpd_tk: tokens,
    b_rpd_cp: 9_000,
    b_rpd_ra: 9_000,
    b_rpd_rp: 86_400_000,
    b_rpd_tc: consumed,
  }),
});
const shardOf = (shard: number, count: number, tokens: number): Item => ({
  PK: { S: `${OLD_NAMESPACE}/BUCKET#u#gpt-4#${shard}` },
  SK: { S: '#STATE' },
  ...numbers({
    shard_count: count,
    rf: NOW_MS,
    b_rpd_tk: tokens,
    b_rpd_cp: 512_000,
    b_rpd_ra: 512_000,
    b_rpd_rp: 86_400_000,
    b_rpd_tc: 3,
  }),
});
const namespace: Item = {
  PK: { S: '_/SYSTEM#' },
  SK: { S: '#NAMESPACE#default' },
  namespace_id: { S: OLD_NAMESPACE },
  status: { S: 'active' },
  created_at: { S: '2026-01-01T00:00:00Z' },
};
const reverse: Item = { ...namespace, SK: { S: `#NSID#${OLD_NAMESPACE}` }, namespace_name: { S: 'default' } };
/** Gives the limiter limits. */
const config: Item = {
  PK: { S: 'RESOURCE#gpt-4' },
  SK: { S: '#CONFIG' },
  ...numbers({ l_rpd_cp: 9, l_rpd_ra: 9, l_rpd_rp: 86_400, config_version: 1 }),
};

describe.skipIf(ENGINE.missing)(`migrating a table${ENGINE.note}`, () => {
  let world: LegacyWorld;
  let proxy: FaultProxy;

  beforeAll(async () => {
    world = await LegacyWorld.start();
    proxy = await startFaultProxy(world.engine.endpoint, { record: true });
  });
  beforeEach(() => proxy.requests.clear());
  afterAll(async () => {
    await proxy?.stop();
    await world?.stop();
  });

  const migrate = async (tableName: string, more: Partial<MigrateOptions> = {}): Promise<MigrationReport> =>
    runMigrations({ tableName, region: world.reach.region, endpoint: proxy.endpoint, ...more });
  const open = async (table: string): Promise<RateLimiter> =>
    RateLimiter.open(createDynamoDBBackend({ table, ...world.reach }), { clock: fakeClock(NOW_MS) });
  const available = async (table: string): Promise<unknown> => {
    await using limiter = await open(table);
    return await limiter.available({ entityId: 'u', resource: 'gpt-4' });
  };
  const commandFor = (table: string): string =>
    `headgate migrate --store 'dynamodb://${table}?region=${world.reach.region}&endpoint=${world.reach.endpoint}'`;
  const isVersion = (item: unknown): boolean =>
    JSON.stringify(item ?? {}).includes('"_/SYSTEM#"},"SK":{"S":"#VERSION"');
  const versionOf = async (table: string): Promise<string | undefined> =>
    (await world.dump(table)).find((item) => keyOf(item) === '_/SYSTEM# #VERSION')?.['schema_version']?.N;

  test('all migrations convert all layouts in one table', async () => {
    const newest = legacyTable('v0.9', 80, 5).items;
    const oldest = legacyTable('per-limit', 30, 5).items.filter(({ SK }) => SK?.S?.startsWith('#BUCKET#'));
    const literal = { ...shardOf(0, 1, 2_000), PK: { S: 'default/BUCKET#v#gpt-4#0' } };
    const { name } = await world.table([...newest, ...oldest, literal, composite(4_000, 5_000)]);
    const report = await migrate(name);
    expect(report.migrations.map(({ id }) => id)).toEqual(MIGRATIONS.map(({ id }) => id));
    expect(MIGRATIONS.map(({ id }) => id)).toEqual(['0001', '0004', '0002', '0003']);
    expect(report).toMatchObject({ from: 0, to: 2 });
    for (const { found, removed, written } of report.migrations) {
      expect(removed).toBe(found);
      expect(written).toBeGreaterThan(0);
    }
    const needed = new Set(proxy.requests.recorded.flatMap(permissionsOf));
    const row = PAGE.split('\n').find((line) => line.startsWith('| `headgate migrate` |'));
    expect(row).toBe(`| \`headgate migrate\` | ${[...needed].toSorted().join(', ')} |`);
  });

  test('a dry run only reads, and reports what a migration would do', async () => {
    const { items } = legacyTable('per-limit', COUNT, 2);
    const { name } = await world.table(items);
    const before = await world.dump(name);
    const report = await migrate(name, { dryRun: true });
    expect(report).toMatchObject({ from: 0, to: 0, dryRun: true });
    // All records except the version record of the old clients.
    expect(report.migrations.reduce((sum, { found }) => sum + found, 0)).toBe(items.length - 1);
    expect(report.migrations).toMatchObject([
      { written: 0, removed: 0 },
      { written: 0, removed: 0 },
    ]);
    expect(Object.keys(proxy.requests.byOperation()).toSorted()).toEqual([
      'BatchGetItem',
      'DescribeTable',
      'GetItem',
      'Scan',
    ]);
    expect(await world.dump(name)).toEqual(before);
  });

  test('a migration reports its progress', async () => {
    const { name } = await world.table(legacyTable('composite', COUNT, 2).items);
    const reported: { done: number; total: number | null }[] = [];
    await migrate(name, { onProgress: ({ done, total }) => reported.push({ done, total }) });
    expect(reported.length).toBeGreaterThanOrEqual(3);
    expect(reported.at(-1)?.done).toBe(reported.at(-1)?.total);
  });

  test('an aborted migration stops and continues with the next run', async () => {
    const legacy = legacyTable('composite', COUNT, 2);
    const { name } = await world.table(legacy.items);
    const stop = new AbortController();
    const reason = new Error('enough');
    const onProgress = (): void => stop.abort(reason);
    await expect(migrate(name, { signal: stop.signal, onProgress })).rejects.toBe(reason);
    expect(await versionOf(name)).toBe('0');
    await migrate(name);
    await expectMigrated(world, name, legacy);
  });

  describe('migrating phase by phase', () => {
    /** Fails every request after the write of the state that starts this phase. */
    const dieBefore = (phase: string) => {
      let begun = false;
      const when = ({ operation, body }: DynamoRequest): boolean => {
        if (begun) return true;
        const { PK, SK, state } = (body['Item'] ?? {}) as Record<string, { S?: string }>;
        begun = operation === 'PutItem' && PK?.S?.startsWith('_/MIGRATION#') === true && SK?.S === '#STATE';
        begun &&= state?.S?.includes(`"phase":"${phase}"`) === true;
        return false;
      };
      return proxy.inject(fault.accessDenied(), { when });
    };

    test.each([
      ['per-limit', 'verify'],
      ['composite', 'verify'],
      ['composite', 'remove'],
      ['composite', 'done'],
      ['v0.9', 'remove'],
      ['literal', 'verify'],
      ['literal', 'done'],
    ] as const)(
      'a migration of %s that stops before %s refuses clients, loses nothing, and continues with the next run',
      async (layout, phase) => {
        const legacy = legacyTable(layout, COUNT, 3);
        const { name } = await world.table(legacy.items);
        const death = dieBefore(phase);
        await expect(migrate(name)).rejects.toMatchObject({ code: 'backend.denied' });
        death.release();
        const dump = new Map((await world.dump(name)).map((item) => [keyOf(item), item]));
        if (phase !== 'done') {
          const moved = legacy.items.filter((item) => item['SK']?.S !== '#VERSION');
          expect(moved.filter((item) => dump.get(keyOf(item)) === undefined)).toEqual([]);
        }
        expect(await versionOf(name)).toBe('0');
        await expect(open(name)).rejects.toMatchObject({
          code: 'schema.mismatch',
          command: commandFor(name),
        });
        proxy.requests.clear();
        expect(await migrate(name)).toMatchObject({ from: 0, to: 2 });
        expect(await versionOf(name)).toBe('2');
        await expectMigrated(world, name, legacy);
      },
    );

    test('a run that ends between a page and its checkpoint counts every new record once', async () => {
      const { name } = await world.table([composite(9_000, 0), config]);
      const isCheckpoint = ({ body }: DynamoRequest): boolean => JSON.stringify(body['Item'] ?? {}).includes('"#PASS"');
      proxy.inject(fault.accessDenied(), { operations: ['PutItem'], when: isCheckpoint, times: 1 });
      await expect(migrate(name)).rejects.toMatchObject({ code: 'backend.denied' });
      expect(await migrate(name)).toMatchObject({ migrations: [{ found: 2, written: 2, removed: 2 }] });
    });

    test('a copy that no longer matches the old record is written again before anything is removed', async () => {
      const { name } = await world.table([composite(9_000, 0), config]);
      const first = dieBefore('verify');
      await expect(migrate(name)).rejects.toMatchObject({ code: 'backend.denied' });
      first.release();
      await world.put(name, [composite(3_000, 6_000)]);
      const second = dieBefore('remove');
      await expect(migrate(name)).rejects.toMatchObject({ code: 'backend.denied' });
      second.release();
      const dump = await world.dump(name);
      expect(dump.map(keyOf)).toContain('ENTITY#u #BUCKET#gpt-4');
      const copy = dump.find(({ SK, PK }) => SK?.S === '#STATE' && !PK?.S?.startsWith('_/'));
      expect(copy).toMatchObject({ b_rpd_tk: { N: '3000' }, b_rpd_tc: { N: '6000' } });
    });

    test('an old record that is written after the removal is found before the version changes', async () => {
      const { name } = await world.table([composite(9_000, 0), config]);
      const death = dieBefore('done');
      await expect(migrate(name)).rejects.toMatchObject({ code: 'backend.denied' });
      death.release();
      // All records are migrated: only the last scan sees what is written now.
      let looks = 0;
      const isLastLook = ({ body }: DynamoRequest): boolean => 'ProjectionExpression' in body && (looks += 1) === 1;
      const hold = proxy.inject(fault.holdRequest(), { operations: ['Scan'], when: isLastLook, times: 1 });
      const running = migrate(name).catch((error: unknown) => error);
      await hold.untilFired();
      await world.put(name, [composite(9_000, 0)]);
      hold.release();
      expect(await running).toMatchObject({ code: 'infrastructure.migration', retryable: true });
      expect(await versionOf(name)).toBe('0');
      expect(await migrate(name)).toMatchObject({ to: 2, migrations: [{ found: 1, removed: 1 }] });
      expect(await available(name)).toEqual({ rpd: 9 });
    });

    test('the version is written last, after another scan of the whole table', async () => {
      const { name } = await world.table(legacyTable('composite', COUNT, 3).items);
      await migrate(name);
      const writes = proxy.requests.recorded.filter(({ operation }) => /Put|Update|Write/.test(operation));
      const versions = writes.filter(({ body }) => isVersion(body['Item']));
      expect(versions).toHaveLength(2);
      expect(writes.at(-1)).toBe(versions[1]);
      const last = proxy.requests.recorded.findLastIndex(({ operation }) => operation === 'Scan');
      const removal = proxy.requests.recorded.findLastIndex(({ operation }) => operation === 'TransactWriteItems');
      expect(last).toBeGreaterThan(removal);
    });
  });

  describe('migrating while clients write', () => {
    const isRemoval = ({ body }: Pick<DynamoRequest, 'body'>): boolean => JSON.stringify(body).includes('"Delete"');

    test('what an old client takes before the removal is also taken from the new bucket', async () => {
      const { name } = await world.table([composite(9_000, 0), config]);
      const hold = proxy.inject(fault.holdRequest(), { operations: ['TransactWriteItems'], when: isRemoval, times: 1 });
      const running = migrate(name);
      await hold.untilFired();
      await world.put(name, [composite(2_000, 7_000)]);
      hold.release();
      expect(await running).toMatchObject({ to: 2, migrations: [{ found: 2, removed: 2, strict: 0, left: 0 }] });
      expect(await available(name)).toEqual({ rpd: 2 });
    });

    test('an old client that never stops writing is detected, and none of its records are removed', async () => {
      const { name } = await world.table([composite(9_000, 0), config]);
      let taken = 0;
      const holds = proxy.inject(fault.holdRequest(30), { operations: ['TransactWriteItems'], when: isRemoval });
      const running = migrate(name).then(
        () => 'done',
        (error: unknown) => error,
      );
      const writing = (async () => {
        for (let at = 1; at < 50; at++) {
          const fired = await Promise.race([holds.untilFired(at), running.then(() => 'over')]);
          if (fired === 'over') return;
          taken += 1;
          await world.put(name, [composite(9_000 - taken, taken)]);
        }
      })();
      expect(await running).toMatchObject({ code: 'infrastructure.migration', retryable: true });
      holds.release();
      await writing;
      expect(await versionOf(name)).toBe('0');
      expect((await world.dump(name)).map(keyOf)).toContain('ENTITY#u #BUCKET#gpt-4');
      expect(await migrate(name)).toMatchObject({ to: 2 });
    });

    test('a new bucket that a client used before the migration loses what the old bucket lacked', async () => {
      const { name } = await world.table([]);
      await createTable({ tableName: name, client: world.client });
      await using early = await open(name);
      await early.config.setResource('gpt-4', { limits: [Limit.perDay('rpd', 9)] });
      await early.acquire({ entityId: 'u', resource: 'gpt-4', consume: { rpd: 2 } });
      await world.put(name, [composite(4_000, 5_000), { PK: { S: '_/SYSTEM#' }, SK: { S: '#VERSION' } }]);
      expect((await migrate(name, { dryRun: true })).migrations).toMatchObject([{ strict: 1 }]);
      expect(await migrate(name)).toMatchObject({ migrations: [{ id: '0002', found: 1, removed: 1, strict: 1 }] });
      expect(await available(name)).toEqual({ rpd: 9 - 2 - 5 });
    });

    test('a migration retries while the table is throttled', async () => {
      const legacy = legacyTable('composite', COUNT, 4);
      const { name } = await world.table(legacy.items);
      proxy.inject(fault.throttle(), { operations: ['Scan', 'BatchGetItem', 'TransactWriteItems'], times: 8 });
      proxy.inject(fault.loseAnswer(), { operations: ['TransactWriteItems'], times: 1 });
      proxy.inject(fault.transactionConflict(), { operations: ['TransactWriteItems'], times: 1 });
      await migrate(name);
      await expectMigrated(world, name, legacy);
    });
  });

  describe('versions of a migrated table', () => {
    test.each(LAYOUTS)(
      'a table of %s is refused before the migration with the command to run, and old clients are refused after it',
      async (layout: LegacyLayout) => {
        const { name } = await world.table(legacyTable(layout, 20, 1).items);
        const refusal = { code: 'schema.mismatch', command: commandFor(name) };
        await expect(open(name)).rejects.toMatchObject(refusal);
        await expect(createTable({ tableName: name, ...world.reach })).rejects.toMatchObject(refusal);
        await migrate(name);
        await (await open(name)).close();
        const oldVersions = (await world.dump(name)).filter(
          ({ PK, SK }) => SK?.S === '#VERSION' && PK?.S !== '_/SYSTEM#',
        );
        const expected = { schema_version: { S: '999.0.0' }, client_min_version: { S: '0.0.0' } };
        // The old constructor neither writes nor reads a version record.
        expect(oldVersions).toMatchObject(layout === 'literal' ? [] : [expected]);
      },
    );

    test('a table without old records becomes ready, and a ready table does not change', async () => {
      const { name } = await world.table([]);
      expect(await migrate(name)).toMatchObject({ from: 0, to: 2, migrations: [] });
      proxy.requests.clear();
      expect(await migrate(name)).toMatchObject({ from: 2, to: 2, migrations: [] });
      // The version, the state of each migration, and all records.
      expect(proxy.requests.byOperation()).toEqual({ GetItem: 1 + MIGRATIONS.length, Scan: 1 });
    });
  });

  test('limits that are set after a migration are newer than the converted ones, and reach converted buckets', async () => {
    const { name } = await world.table([composite(9_000, 0), config]);
    await migrate(name);
    await using limiter = await open(name);
    await limiter.config.setResource('gpt-4', { limits: [Limit.perDay('rpd', 4)] });
    await limiter.acquire({ entityId: 'u', resource: 'gpt-4', consume: { rpd: 1 } });
    expect(await available(name)).toEqual({ rpd: 3 });
    const bucket = (await world.dump(name)).find(({ SK, PK }) => SK?.S === '#STATE' && !PK?.S?.startsWith('_/'));
    expect(bucket).toMatchObject({ cv: { S: '2' }, b_rpd_cp: { N: '4000' }, b_rpd_tc: { N: '1000' } });
  });

  test('an unused table becomes ready, as a new one does', async () => {
    const { name } = await world.table([]);
    expect(await migrate(name)).toMatchObject({ from: 0, to: 2, migrations: [] });
    await using limiter = await RateLimiter.open(createDynamoDBBackend({ table: name, ...world.reach }));
    expect(await limiter.ping()).toMatchObject({ ok: true });
  });

  describe('migrating shards', () => {
    const config9 = {
      ...config,
      PK: { S: `${OLD_NAMESPACE}/RESOURCE#gpt-4` },
      ...numbers({ l_rpd_cp: 512, l_rpd_ra: 512 }),
    };

    test.each([
      ['of a bucket with 256', Array.from({ length: 256 }, (_, at) => shardOf(at, 256, 1_000)), 256],
      ['(two without the first)', [shardOf(1, 4, 5_000), shardOf(3, 4, 7_000)], 12],
      ['(one without the first)', [shardOf(3, 4, 7_000)], 7],
      ['(one beyond the count of the first)', [shardOf(0, 1, 100_000), shardOf(1, 2, 7_000)], 107],
    ])('shards %s become one bucket', async (_, shards, left) => {
      const { name } = await world.table([namespace, reverse, config9, ...shards]);
      const report = await migrate(name);
      expect(report.migrations).toMatchObject([{ found: shards.length + 3, removed: shards.length + 3, left: 0 }]);
      expect(await available(name)).toEqual({ rpd: left });
      const buckets = (await world.dump(name)).filter(({ SK, PK }) => SK?.S === '#STATE' && !PK?.S?.startsWith('_/'));
      expect(buckets).toMatchObject([{ shard_count: { N: '1' }, b_rpd_tc: { N: String(3 * shards.length) } }]);
    });
  });
});
