import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTable } from '../../src/backends/dynamodb/index.js';
import { createDynamoDBBackend } from '../../src/backends/dynamodb/dynamodb.js';
import {
  type MigrateOptions,
  type MigrationReport,
  runMigrations,
} from '../../src/backends/dynamodb/migrations/run.js';
import { Limit } from '../../src/core/limit.js';
import type { ConfigLevelRef } from '../../src/limiter/api/config-api.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { fakeClock } from '../../src/testing/fake-clock.js';
import { ENGINE } from '../support/dynamodb/world.js';
import { LegacyWorld } from '../support/migration/legacy-world.js';
import { ZaeClient, zaeRelease } from './zae-clients.js';

const HOUR_MS = 3_600_000;
const RPD = { name: 'rpd', amount: 10, seconds: 86_400 };
const TPD = { name: 'tpd', amount: 1_000, seconds: 86_400, burst: 3_000 };
/** A name that zae-limiter accepts and that is too long for Headgate. */
const LONG = 'm'.repeat(200);

/** Each release with its ways to open it. `legacy` is the constructor with the name of a stack. */
const OPENINGS = [
  ['0.5.0', 'legacy'],
  ['0.9.1', 'legacy'],
  ['0.12.0', 'legacy'],
  ['0.12.0', 'default'],
  ['0.13.0', 'default'],
  ['0.17.0', 'legacy'],
  ['0.17.0', 'default'],
] as const;
const isFirst = (release: string): boolean => release === '0.5.0';
const hasNamespaces = (release: string): boolean => !['0.5.0', '0.9.1'].includes(release);

describe.skipIf(ENGINE.missing)(`tables that published releases of zae-limiter filled${ENGINE.note}`, () => {
  let world: LegacyWorld;

  beforeAll(async () => {
    world = await LegacyWorld.start();
  });
  afterAll(async () => world?.stop());

  const migrate = async (tableName: string, more: Partial<MigrateOptions> = {}): Promise<MigrationReport> =>
    runMigrations({ tableName, ...world.reach, ...more });
  const start = async (release: string, how: string): Promise<{ zae: ZaeClient; name: string }> => {
    const { name } = await world.table([]);
    const zae = new ZaeClient(release, world, name);
    await zae.do('open', { how });
    return { zae, name };
  };
  /** An instant at which no bucket has refilled since it was last written. */
  const open = async (table: string): Promise<RateLimiter> => {
    const bases = (await world.dump(table)).map((item) => Number(item['rf']?.N ?? item['last_refill_ms']?.N ?? 0));
    const clock = fakeClock(Math.max(...bases, Math.floor(Date.now() / HOUR_MS) * HOUR_MS));
    return RateLimiter.open(createDynamoDBBackend({ table, ...world.reach }), { clock });
  };
  const commandFor = (table: string): string =>
    `headgate migrate --store 'dynamodb://${table}?region=${world.reach.region}&endpoint=${world.reach.endpoint}'`;

  /** Creates an organization with a user. Both have taken 3 and 200 if the release cascades. */
  const fill = async (zae: ZaeClient, release: string): Promise<void> => {
    await zae.do('entity', { id: 'org' });
    await zae.do('entity', { id: 'user', parent: 'org', cascade: !isFirst(release) });
    if (!isFirst(release)) await zae.do('limits', { resource: 'gpt-4', rules: [RPD, TPD] });
    await zae.do('limits', { entity: 'user', resource: 'gpt-4', rules: [RPD, TPD] });
    const given = isFirst(release) ? { rules: [RPD, TPD] } : {};
    await zae.do('acquire', { entity: 'user', resource: 'gpt-4', consume: { rpd: 3, tpd: 200 }, ...given });
    const at_ms = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
    await zae.do('usage', { entity: 'user', resource: 'gpt-4', limit: 'rpd', tokens: 3, at_ms });
    await zae.do('usage', { entity: 'user', resource: 'gpt-4', limit: 'tpd', tokens: 200, at_ms });
  };

  describe.each(OPENINGS)('zae-limiter %s, opened by %s', (release, how) => {
    const { missing, note } = zaeRelease(release);

    test.skipIf(missing)(`a migration keeps balances, counters, configs, entities and usage${note}`, async () => {
      const { zae, name } = await start(release, how);
      await using _ = zae;
      await fill(zae, release);
      const found = (await world.dump(name)).length;
      await expect(createTable({ tableName: name, ...world.reach })).rejects.toMatchObject({ code: 'schema.mismatch' });
      const report = await migrate(name);
      const sum = (of: 'found' | 'removed' | 'left'): number =>
        report.migrations.reduce((total, migration) => total + migration[of], 0);
      expect(report).toMatchObject({ from: 0, to: 2, settings: [] });
      expect(sum('removed')).toBe(sum('found'));
      expect(sum('left')).toBe(0);
      // All records except the bookkeeping of old clients, which is not changed.
      expect(sum('found')).toBeGreaterThanOrEqual(found - 4);

      await using limiter = await open(name);
      const balance = { rpd: 7, tpd: 2_800 };
      expect(await limiter.available({ entityId: 'user', resource: 'gpt-4' })).toEqual(balance);
      const { items: buckets } = await limiter.buckets.list({ entityId: 'user' });
      expect(buckets).toMatchObject([{ resource: 'gpt-4', limits: [{ consumed: 3 }, { consumed: 200 }] }]);
      expect((await limiter.entities.children('org')).items).toMatchObject([
        { id: 'user', parentId: 'org', cascade: !isFirst(release), metadata: { tier: 'gold' }, name: 'The user' },
      ]);
      const config = await limiter.config.get({ entityId: 'user', resource: 'gpt-4' });
      expect(config?.limits?.map(String)).toEqual(['rpd:10/day', 'tpd:1000/day:3000']);
      const from = new Date(0);
      const to = new Date(Date.now() + HOUR_MS);
      const usage = await limiter.usage.query({ entityId: 'user', resource: 'gpt-4', window: 'hourly', from, to });
      expect(usage.items).toMatchObject([{ tokens: { rpd: 3, tpd: 200 }, acquires: 1 }]);
      if (!isFirst(release)) {
        expect(await limiter.available({ entityId: 'org', resource: 'gpt-4' })).toEqual(balance);
        await limiter.acquire({ entityId: 'user', resource: 'gpt-4', consume: { rpd: 7 } });
        expect(await limiter.available({ entityId: 'org', resource: 'gpt-4' })).toEqual({ ...balance, rpd: 0 });
      }

      const before = await world.dump(name);
      expect(await migrate(name)).toMatchObject({ from: 2, to: 2, migrations: [] });
      expect(await world.dump(name)).toEqual(before);
    });

    test.skipIf(missing)(`one record without a counterpart refuses the migration before it writes${note}`, async () => {
      const { zae, name } = await start(release, how);
      await using _ = zae;
      await fill(zae, release);
      await zae.do('limits', { entity: 'user', resource: LONG, rules: [RPD] });
      const before = await world.dump(name);
      const refused = await migrate(name).catch((error: unknown) => error);
      expect(refused).toMatchObject({ code: 'infrastructure.migration', message: expect.stringContaining(LONG) });
      expect(String(refused)).toContain('Nothing was written');
      expect(await world.dump(name)).toEqual(before);
      const rules = isFirst(release) ? { rules: [RPD, TPD] } : {};
      await zae.do('acquire', { entity: 'user', resource: 'gpt-4', consume: { rpd: 1 }, ...rules });

      const report = await migrate(name, { leave: true });
      expect(report.migrations.flatMap(({ problems }) => problems)).toMatchObject([
        { record: expect.stringContaining(LONG), reason: expect.stringContaining('1 to 128') },
      ]);
      await using limiter = await open(name);
      expect(await limiter.available({ entityId: 'user', resource: 'gpt-4' })).toEqual({ rpd: 6, tpd: 2_800 });
      const after = await world.dump(name);
      expect(after.filter(({ PK, SK }) => `${PK?.S}${SK?.S}`.includes(`#${LONG}`)).length).toBeGreaterThan(0);
      // Each further run, with or without `leave`, names the record again and changes nothing.
      const again = {
        from: 2,
        to: 2,
        migrations: [{ left: 1, problems: [{ record: expect.stringContaining(LONG) }] }],
      };
      expect(await migrate(name, { leave: true })).toMatchObject(again);
      expect(await migrate(name)).toMatchObject(again);
      expect(await world.dump(name)).toEqual(after);
    });
  });

  describe.each(['0.9.1', '0.12.0', '0.13.0', '0.17.0'])('a migrated table and zae-limiter %s', (release) => {
    const { missing, note } = zaeRelease(release);
    const how = hasNamespaces(release) ? 'default' : 'legacy';

    test.skipIf(missing)(`a client of zae-limiter that is opened after the migration is refused${note}`, async () => {
      const { zae, name } = await start(release, how);
      await zae[Symbol.asyncDispose]();
      await migrate(name);
      await using late = new ZaeClient(release, world, name);
      expect(await late.ask({ do: 'open', how })).toMatchObject({ ok: false });
    });
  });

  describe.each(['0.12.0', '0.13.0', '0.17.0'])('zae-limiter %s', (release) => {
    const { missing, note } = zaeRelease(release);
    const settings = [{ setting: 'disabled', records: 3, treatment: 'converted' }];

    test.skipIf(missing)(
      `disabled resources grant nothing after the migration, and disabled entities are paused${note}`,
      async () => {
        const { zae, name } = await start(release, 'default');
        await using _ = zae;
        await fill(zae, release);
        await zae.do('limits', { resource: 'off', rules: [RPD] });
        await zae.do('limits', { entity: 'user', resource: 'off', rules: [TPD] });
        await zae.do('acquire', { entity: 'other', resource: 'off', consume: { rpd: 1 } });
        await zae.do('disable', { resource: 'off' });
        await zae.do('disable', { entity: 'blocked', resource: 'gpt-4' });
        await zae.do('disable', { entity: 'user' });
        expect(await migrate(name, { dryRun: true })).toMatchObject({ settings });
        expect(await migrate(name)).toMatchObject({ to: 2, settings });
        await using limiter = await open(name);
        for (const [entityId, resource, consume] of [
          ['new', 'off', { rpd: 1 }],
          ['other', 'off', { rpd: 1 }],
        ] as const) {
          const outcome = limiter.acquire({ entityId, resource, consume });
          await expect(outcome, `${entityId} ${resource}`).rejects.toMatchObject({ code: 'limit.impossible' });
        }
        const own = { limits: [Limit.perDay('own', 5)] };
        for (const ask of [
          { entityId: 'blocked', resource: 'gpt-4', consume: { rpd: 1 } },
          { entityId: 'blocked', resource: 'gpt-4' },
          { entityId: 'blocked', resource: 'gpt-4', consume: { own: 1 }, ...own },
          { entityId: 'user', resource: 'gpt-4', consume: { rpd: 1 } },
          { entityId: 'user', resource: 'off', consume: { tpd: 1 } },
          { entityId: 'user', resource: 'any', consume: { own: 1 }, ...own },
        ]) {
          await expect(limiter.acquire(ask), JSON.stringify(ask)).rejects.toMatchObject({ code: 'entity.paused' });
        }
        await limiter.acquire({ entityId: 'new', resource: 'gpt-4', consume: { rpd: 1 } });
        // Resumed, they have the limits that they had, and a second run does not pause them again.
        await limiter.resume({ entityId: 'user' });
        await limiter.resume({ entityId: 'blocked', resource: 'gpt-4' });
        await migrate(name);
        for (const entityId of ['user', 'blocked']) {
          await limiter.acquire({ entityId, resource: 'gpt-4', consume: { rpd: 1 } });
        }
      },
    );

    test.skipIf(missing)(
      `a client of zae-limiter that still runs is detected, and its writes are migrated${note}`,
      async () => {
        const { zae, name } = await start(release, 'default');
        await using _ = zae;
        await fill(zae, release);
        await zae.do('acquire', { entity: 'other', resource: 'gpt-4', consume: { rpd: 1 } });
        await migrate(name);
        await zae.do('acquire', { entity: 'late', resource: 'gpt-4', consume: { rpd: 4 } });
        await zae.do('limits', { entity: 'other', resource: 'gpt-4', rules: [{ ...RPD, amount: 60, seconds: 60 }] });
        await zae.do('entity', { id: 'stray', parent: 'org' });

        await using limiter = await open(name);
        const foreign = { code: 'schema.mismatch', command: commandFor(name) };
        const take = (entityId: string) => limiter.acquire({ entityId, resource: 'gpt-4', consume: { rpd: 1 } });
        await expect(take('late')).rejects.toMatchObject(foreign);
        await expect(take('other')).rejects.toMatchObject(foreign);
        await expect(take('stray')).rejects.toMatchObject(foreign);
        await expect(limiter.entities.get('stray')).rejects.toMatchObject(foreign);
        expect((await limiter.entities.children('org')).items).toMatchObject([{ id: 'user' }]);
        expect((await limiter.buckets.list({ entityId: 'late' })).items).toEqual([]);
        await take('user');

        const report = await migrate(name);
        expect(report).toMatchObject({ from: 2, to: 2, migrations: [{ id: '0001', left: 0 }] });
        await using again = await open(name);
        expect(await again.available({ entityId: 'late', resource: 'gpt-4' })).toMatchObject({ rpd: 6 });
        expect((await again.config.get({ entityId: 'other', resource: 'gpt-4' }))?.limits?.map(String)).toEqual([
          'rpd:60/min',
        ]);
        expect((await again.entities.children('org')).items.map(({ id }) => id)).toEqual(['stray', 'user']);
        await again.acquire({ entityId: 'other', resource: 'gpt-4', consume: { rpd: 1 } });
        expect(await again.available({ entityId: 'user', resource: 'gpt-4' })).toMatchObject({ rpd: 6 });
      },
    );
  });

  describe('zae-limiter 0.17.0', () => {
    const { missing, note } = zaeRelease('0.17.0');

    test.skipIf(missing)(`settings without a counterpart are refused, counted and dropped by name${note}`, async () => {
      const { zae, name } = await start('0.17.0', 'default');
      await using _ = zae;
      await fill(zae, '0.17.0');
      const version = { schema_version: '0.10.0', lambda_version: '0.17.0' };
      await zae.do('call', { target: 'repository', method: 'set_version_record', args: version });
      await zae.do('limits', { resource: 'soft', rules: [{ ...RPD, soft: true }] });
      await zae.do('limits', { resource: 'night', rules: [{ ...RPD, schedule: '0 0-6 * * *' }] });
      await zae.do('limits', {
        resource: 'session',
        rules: [RPD, { name: 'chat', amount: 5, session: 3_600, seconds: 0 }],
      });
      await zae.do('acquire', { entity: 'user', resource: 'session', consume: { chat: 1, rpd: 2 } });
      await zae.do('call', {
        target: 'repository',
        method: 'set_resource_cascade',
        args: { resource: 'gpt-4', cascade: false },
      });
      await zae.do('call', {
        target: 'repository',
        method: 'bypass_entity',
        args: { entity_id: 'user', resource: 'night' },
      });
      const before = await world.dump(name);
      const refused = await migrate(name).catch((error: unknown) => String(error));
      for (const setting of ['cascade', 'schedules', 'sessions']) expect(refused).toContain(setting);
      for (const setting of ['bypass', 'soft']) expect(refused).not.toContain(`--drop ${setting}`);
      expect(await world.dump(name)).toEqual(before);

      const report = await migrate(name, { drop: ['bypass', 'cascade', 'schedules', 'sessions', 'soft'] });
      expect(report.settings.map(({ setting, treatment }) => `${setting} ${treatment}`)).toEqual([
        'bypass dropped',
        'cascade dropped',
        'schedules dropped',
        'sessions dropped',
        'soft dropped',
      ]);
      await using limiter = await open(name);
      expect((await limiter.config.get({ resource: 'session' }))?.limits?.map(String)).toEqual(['rpd:10/day']);
      expect((await limiter.config.get({ resource: 'soft' }))?.limits?.map(String)).toEqual(['rpd:10/day']);
      expect(await limiter.available({ entityId: 'user', resource: 'session' })).toEqual({ rpd: 8 });
    });

    test.skipIf(missing)(`soft limits become shadows, and bypassed entities bypass${note}`, async () => {
      const { zae, name } = await start('0.17.0', 'default');
      await using _ = zae;
      await fill(zae, '0.17.0');
      const version = { schema_version: '0.10.0', lambda_version: '0.17.0' };
      await zae.do('call', { target: 'repository', method: 'set_version_record', args: version });
      await zae.do('limits', { resource: 'soft', rules: [{ ...RPD, soft: true }, TPD] });
      await zae.do('limits', { resource: 'free', rules: [RPD] });
      await zae.do('limits', { entity: 'user', resource: 'free', rules: [{ ...RPD, amount: 2 }] });
      const bypass = async (method: string, args: object) => zae.do('call', { target: 'repository', method, args });
      await bypass('bypass_resource', { resource: 'free' });
      await bypass('bypass_entity', { entity_id: 'vip' });
      expect((await migrate(name)).settings).toMatchObject([
        { setting: 'bypass', records: 2, treatment: 'converted' },
        { setting: 'soft', records: 1, treatment: 'converted' },
      ]);
      await using limiter = await open(name);
      const textsOf = async (ref: ConfigLevelRef) => (await limiter.config.get(ref))?.limits?.map(String);
      expect(await textsOf({ resource: 'soft' })).toEqual(['rpd:10/day!shadow', 'tpd:1000/day:3000']);
      expect(await textsOf({ resource: 'free' })).toEqual(['rpd:10/day!shadow']);
      expect(await textsOf({ entityId: 'user', resource: 'free' })).toEqual(['rpd:2/day!shadow']);
      for (const [entityId, resource] of [
        ['new', 'soft'],
        ['new', 'free'],
        ['user', 'free'],
        ['vip', 'gpt-4'],
      ] as const) {
        const decision = await limiter.tryAcquire({ entityId, resource, consume: { rpd: 1_000 } });
        expect([entityId, resource, decision.granted]).toEqual([entityId, resource, true]);
      }
      expect(await limiter.entities.get('vip')).toMatchObject({ bypass: true });
      const enforced = { entityId: 'new', resource: 'gpt-4', consume: { rpd: 1_000 } };
      expect((await limiter.tryAcquire(enforced)).granted).toBe(false);
    });
  });
});
