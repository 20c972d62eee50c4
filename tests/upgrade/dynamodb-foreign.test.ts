import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createDynamoDBBackend } from '../../src/backends/dynamodb/dynamodb.js';
import { createTable } from '../../src/backends/dynamodb/index.js';
import { runMigrations } from '../../src/backends/dynamodb/migrations/run.js';
import type { Item } from '../../src/backends/dynamodb/client/transport.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { fakeClock } from '../../src/testing/fake-clock.js';
import { ENGINE } from '../support/dynamodb/world.js';
import { keyOf, LegacyWorld } from '../support/migration/legacy-world.js';

const NOW_MS = Date.UTC(2026, 5, 15, 12, 30);
const text = (value: string) => ({ S: value });
const number = (value: number) => ({ N: String(value) });

/** The records of a zae-limiter 0.12 client that was opened before the migration. */
const bucketOf = (ns: string, entityId: string): Item => ({
  PK: text(`${ns}/BUCKET#${entityId}#gpt-4#0`),
  SK: text('#STATE'),
  rf: number(NOW_MS),
  shard_count: number(1),
  ...Object.fromEntries(
    [
      ['rpd', 9_000, 7_000],
      ['wcu', 1_000_000, 999_000],
    ].flatMap(([name, capacity, tokens]) => [
      [`b_${name}_tk`, number(Number(tokens))],
      [`b_${name}_cp`, number(Number(capacity))],
      [`b_${name}_ra`, number(Number(capacity))],
      [`b_${name}_rp`, number(86_400_000)],
      [`b_${name}_tc`, number(2_000)],
    ]),
  ),
  GSI3PK: text(`${ns}/ENTITY#${entityId}`),
  GSI3SK: text('BUCKET#gpt-4#0'),
});
const configOf = (ns: string, resource: string): Item => ({
  PK: text(`${ns}/RESOURCE#${resource}`),
  SK: text('#CONFIG'),
  resource: text(resource),
  config_version: number(1),
  l_rpm_cp: number(60),
  l_rpm_ra: number(60),
  l_rpm_rp: number(60),
});
const entityOf = (ns: string, id: string, parentId: string): Item => ({
  PK: text(`${ns}/ENTITY#${id}`),
  SK: text('#META'),
  name: text(id),
  parent_id: text(parentId),
  cascade: { BOOL: false },
  created_at: text('2026-06-15T12:00:00Z'),
  GSI1PK: text(`${ns}/PARENT#${parentId}`),
  GSI1SK: text(`CHILD#${id}`),
});

describe.skipIf(ENGINE.missing)(`records that an older client writes to a table in use${ENGINE.note}`, () => {
  let world: LegacyWorld;
  let table: string;
  let ns: string;
  let limiter: RateLimiter;

  beforeAll(async () => {
    world = await LegacyWorld.start();
  });
  afterAll(async () => world?.stop());
  beforeEach(async () => {
    ({ name: table } = await world.table([]));
    await createTable({ tableName: table, ...world.reach });
    limiter = await RateLimiter.open(createDynamoDBBackend({ table, ...world.reach }), { clock: fakeClock(NOW_MS) });
    await limiter.config.setResource('gpt-4', { limits: [Limit.perDay('rpd', 9)] });
    await limiter.entities.create({ id: 'org' });
    await limiter.entities.create({ id: 'user', parentId: 'org' });
    ns =
      (await world.dump(table)).find((item) => keyOf(item) === '_/SYSTEM# #NAMESPACE#default')?.['namespace_id']?.S ??
      '';
    return () => limiter.close();
  });

  const take = (entityId: string, resource = 'gpt-4') =>
    limiter.acquire({ entityId, resource, consume: resource === 'gpt-4' ? { rpd: 1 } : { rpm: 1 } });
  const migrate = async () => runMigrations({ tableName: table, ...world.reach });
  const refusal = () => ({
    code: 'schema.mismatch',
    command: `headgate migrate --store 'dynamodb://${table}?region=${world.reach.region}&endpoint=${world.reach.endpoint}'`,
  });
  const reopen = async (): Promise<void> => {
    await limiter.close();
    limiter = await RateLimiter.open(createDynamoDBBackend({ table, ...world.reach }), { clock: fakeClock(NOW_MS) });
  };

  test('a foreign bucket refuses only its own acquires, and is usable after the next migration', async () => {
    await world.put(table, [bucketOf(ns, 'late')]);
    await expect(take('late')).rejects.toMatchObject(refusal());
    await expect(limiter.available({ entityId: 'late', resource: 'gpt-4' })).rejects.toMatchObject(refusal());
    expect((await limiter.buckets.list({ entityId: 'late' })).items).toEqual([]);
    await take('other');
    expect(await migrate()).toMatchObject({ from: 2, to: 2, migrations: [{ found: 1, removed: 1, left: 0 }] });
    await take('late');
    expect(await limiter.available({ entityId: 'late', resource: 'gpt-4' })).toEqual({ rpd: 6 });
  });

  test('an outage policy does not admit what a foreign record refuses', async () => {
    await world.put(table, [bucketOf(ns, 'late')]);
    const allowing = await RateLimiter.open(createDynamoDBBackend({ table, ...world.reach }), {
      clock: fakeClock(NOW_MS),
      onUnavailable: 'allow',
    });
    const ask = { entityId: 'late', resource: 'gpt-4', consume: { rpd: 1 } };
    await expect(allowing.acquire(ask)).rejects.toMatchObject(refusal());
    await allowing.close();
  });

  test('a foreign config is not read as a rate per milliseconds, and is newer than the buckets after the migration', async () => {
    await limiter.config.setResource('gpt-5', { limits: [Limit.perMinute('rpm', 9)] });
    await take('user', 'gpt-5');
    await world.put(table, [configOf(ns, 'gpt-5')]);
    await reopen();
    await expect(take('user', 'gpt-5')).rejects.toMatchObject(refusal());
    await expect(limiter.config.get({ resource: 'gpt-5' })).rejects.toMatchObject(refusal());
    await migrate();
    expect((await limiter.config.get({ resource: 'gpt-5' }))?.limits?.map(String)).toEqual(['rpm:60/min']);
    await take('user', 'gpt-5');
    const bucket = (await world.dump(table)).find((item) => keyOf(item) === `${ns}/BUCKET#user#gpt-5#0 #STATE`);
    expect(bucket).toMatchObject({ b_rpm_cp: { N: '60000' }, b_rpm_rp: { N: '60000' } });
  });

  test('a config of this version that an older client disables keeps its periods, and refuses everything', async () => {
    const own = (await world.dump(table)).find((item) => keyOf(item) === `${ns}/RESOURCE#gpt-4 #CONFIG`) ?? {};
    await world.put(table, [{ ...own, disabled: { BOOL: true }, resource: text('gpt-4') }]);
    await reopen();
    await expect(take('user')).rejects.toMatchObject(refusal());
    expect(await migrate()).toMatchObject({ settings: [{ setting: 'disabled', treatment: 'converted' }] });
    expect((await limiter.config.get({ resource: 'gpt-4' }))?.limits?.map(String)).toEqual(['rpd:0/day@1']);
    await expect(take('user')).rejects.toMatchObject({ code: 'limit.impossible' });
  });

  test('a bucket that was paused here stays paused after an older client has changed its config', async () => {
    await limiter.config.setEntity('user', 'gpt-4', { limits: [Limit.perDay('rpd', 9)] });
    await limiter.pause({ entityId: 'user', resource: 'gpt-4', forMs: 3_600_000, reason: 'a test' });
    const own = (await world.dump(table)).find((item) => keyOf(item) === `${ns}/ENTITY#user #CONFIG#gpt-4`) ?? {};
    await world.put(table, [{ ...own, disabled: { BOOL: false }, resource: text('gpt-4') }]);
    await migrate();
    await reopen();
    await expect(take('user')).rejects.toMatchObject({ reason: 'paused' });
    const stored = (await world.dump(table)).find((item) => keyOf(item) === keyOf(own));
    expect(stored).toMatchObject({ pz: own['pz'], pzr: own['pzr'] });
  });

  test('a foreign child is left out of lists, and counted after the migration', async () => {
    await world.put(table, [entityOf(ns, 'stray', 'org')]);
    const ids = async () => (await limiter.entities.children('org')).items.map(({ id }) => id);
    expect(await ids()).toEqual(['user']);
    await expect(limiter.entities.get('stray')).rejects.toMatchObject(refusal());
    await expect(take('stray')).rejects.toMatchObject(refusal());
    await migrate();
    expect(await ids()).toEqual(['stray', 'user']);
    await limiter.entities.delete('user');
    await expect(limiter.entities.delete('org')).rejects.toMatchObject({ code: 'entity.conflict' });
  });

  test('a foreign namespace and a foreign audit record are left out of lists', async () => {
    const registered = { namespace_id: text('zae'), namespace_name: text('late'), status: text('active') };
    await world.put(table, [
      { PK: text('_/SYSTEM#'), SK: text('#NAMESPACE#late'), ...registered, created_at: text('2026-06-15T12:00:00Z') },
      {
        PK: text(`${ns}/AUDIT#user`),
        SK: text('#AUDIT#01J'),
        action: text('limits_set'),
        timestamp: text('2026-06-15T12:00:00Z'),
      },
    ]);
    expect((await limiter.namespaces.list()).items.map(({ name }) => name)).toEqual(['default']);
    expect((await limiter.audit.list({ entityId: 'user' })).items).toHaveLength(1);
  });
});
