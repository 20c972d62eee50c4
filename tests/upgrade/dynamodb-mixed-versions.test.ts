import { DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { RegistryCall } from '../../src/backend.js';
import { deadlineIn } from '../../src/machine-time.js';
import { readItem } from '../../src/backends/dynamodb/client/requests.js';
import { runMigrations } from '../../src/backends/dynamodb/migrations/run.js';
import { checkSchema, raiseVersion } from '../../src/backends/dynamodb/schema/schema.js';
import { createVersionGate } from '../../src/backends/dynamodb/schema/version-gate.js';
import { VERSION_KEY } from '../../src/backends/dynamodb/table/keys.js';
import { Limit } from '../../src/core/limit.js';
import { fault } from '../../src/testing/dynamodb/index.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../support/dynamodb/world.js';

const LIMITS = { limits: [Limit.perHour('rpm', 600)] };
const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };
/** The code of version 1 differs from this code by its number, as far as the version record is concerned. */
const VERSION_1 = { schemaVersion: 1 };
const NEWER_CLIENT = { code: 'schema.mismatch', command: 'npm install headgate@latest' };

describe.skipIf(ENGINE.missing)(`clients of two versions on one table${ENGINE.note}`, () => {
  let world: DynamoWorld;
  let client: DynamoDBClient;
  let space: Space;

  beforeAll(async () => {
    world = await startWorld({ record: true });
    const { endpoint, region, credentials } = world.engine;
    client = new DynamoDBClient({ endpoint, region, credentials });
  });
  afterAll(async () => {
    client?.destroy();
    await world?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    await putVersion(1);
    space = await world.space();
  });

  const putVersion = async (version: number): Promise<void> => {
    const fields = { schema_version: { N: String(version) }, min_client_version: { N: String(version) } };
    const Item = { PK: { S: VERSION_KEY.PK }, SK: { S: VERSION_KEY.SK }, ...fields };
    await client.send(new PutItemCommand({ TableName: world.table.name, Item }));
  };
  const raise = async (): Promise<boolean> => raiseVersion(world.table, deadlineIn(5_000), space.clock.now());
  const record = async () => readItem(world.table, VERSION_KEY, deadlineIn(5_000));
  const call = (): RegistryCall => ({ nowMs: space.clock.now(), timeoutMs: 5_000 });
  const versionReads = (): number =>
    world.proxy.requests.recorded.filter(
      ({ operation, body }) => operation === 'GetItem' && JSON.stringify(body).includes(VERSION_KEY.SK),
    ).length;

  test('a table of version 1 serves clients of both versions, from one bucket', async () => {
    const [older, newer] = [await space.open(LIMITS, VERSION_1), await space.open(LIMITS)];
    await older.acquire(ASK);
    await newer.acquire(ASK);
    expect(await newer.available(ASK)).toEqual({ rpm: 598 });
    expect((await space.shards('user-1', 'gpt-4'))[0]?.acquires).toBe(2);
  });

  test('a table of version 1 refuses portable leases before anything is taken, and serves other leases', async () => {
    const limiter = await space.open({ ...LIMITS, leaseSecrets: ['a secret of this test'] });
    const refused = { code: 'schema.mismatch', command: expect.stringMatching(/^headgate upgrade/) };
    await expect(limiter.acquire({ ...ASK, portable: true })).rejects.toMatchObject(refused);
    expect(await limiter.available(ASK)).toEqual({ rpm: 600 });
    await limiter.acquire({ ...ASK, leaseTtlMs: 60_000 });
    await putVersion(2);
    const raised = await space.open({ ...LIMITS, leaseSecrets: ['a secret of this test'] });
    await (await raised.acquire({ ...ASK, portable: true })).commit();
    expect(await raised.available(ASK)).toEqual({ rpm: 598 });
  });

  test('a table of version 1 refuses options of limits and bypasses, which an older client would not follow', async () => {
    const limiter = await space.open(LIMITS);
    const refused = { code: 'schema.mismatch', command: expect.stringMatching(/^headgate upgrade/) };
    const options = [{ shadow: true }, { reserve: { batch: 0.3 } }, { warnAt: 0.8 }] as const;
    const writeAll = options.map(
      (one) => async () => limiter.config.setResource('gpt-4', { limits: [Limit.perHour('rpm', 600, one)] }),
    );
    for (const write of writeAll) await expect(write()).rejects.toMatchObject(refused);
    await expect(limiter.entities.create({ id: 'user-1', bypass: true })).rejects.toMatchObject(refused);
    await limiter.entities.create({ id: 'user-1' });
    await expect(limiter.entities.update('user-1', { bypass: true })).rejects.toMatchObject(refused);
    await limiter.config.setResource('gpt-4', { limits: [Limit.perHour('rpm', 600)] });
    await putVersion(2);
    const raised = await space.open(LIMITS);
    await raised.config.setResource('gpt-4', { limits: [Limit.perHour('rpm', 600, { shadow: true })] });
    await raised.entities.update('user-1', { bypass: true });
  });

  test('a new table has version 2 and refuses a client of version 1', async () => {
    await putVersion(2);
    await expect(space.open(LIMITS, VERSION_1)).rejects.toMatchObject(NEWER_CLIENT);
    await (await space.open(LIMITS)).acquire(ASK);
  });

  test('a client of version 1 that is running is refused at its next read of the version record', async () => {
    const [older, newer] = [await space.open(LIMITS, VERSION_1), await space.open(LIMITS)];
    await older.acquire(ASK);
    await raise();
    await space.clock.advance(59_000);
    await older.acquire(ASK);
    await space.clock.advance(1_000);
    const before = versionReads();
    await older.acquire(ASK);
    await expect.poll(versionReads).toBe(before + 1);
    await expect.poll(async () => older.tryAcquire(ASK).then(() => null, String)).toMatch(/needs a client/);
    await expect(older.acquire(ASK)).rejects.toMatchObject(NEWER_CLIENT);
    await expect(older.config.setSystem(LIMITS)).rejects.toMatchObject(NEWER_CLIENT);
    await expect(older.namespaces.register('late')).rejects.toMatchObject(NEWER_CLIENT);
    await newer.acquire(ASK);
  });

  test('a client of version 1 that was idle for two minutes writes nothing before it has read the version record', async () => {
    const older = await space.open(LIMITS, VERSION_1);
    await older.acquire(ASK);
    await raise();
    await space.clock.advance(120_000);
    world.proxy.requests.clear();
    await expect(older.acquire(ASK)).rejects.toMatchObject(NEWER_CLIENT);
    expect(world.proxy.requests.count('UpdateItem')).toBe(0);
  });

  test('the outage policy does not admit calls of a client that is too old', async () => {
    const older = await space.open({ ...LIMITS, onUnavailable: 'allow' }, VERSION_1);
    await raise();
    await space.clock.advance(120_000);
    await expect(older.tryAcquire(ASK)).rejects.toMatchObject(NEWER_CLIENT);
  });

  test('a process reads the version record once a minute, and no acquire waits for it', async () => {
    const limiter = await space.open(LIMITS);
    await limiter.acquire(ASK);
    world.proxy.requests.clear();
    const held = world.proxy.inject(fault.holdRequest(), {
      when: ({ body }) => JSON.stringify(body).includes(VERSION_KEY.SK),
    });
    for (let second = 0; second < 119; second++) {
      await space.clock.advance(1_000);
      await limiter.acquire(ASK);
    }
    expect(versionReads()).toBe(1);
    held.release();
  });

  test('a failed read of the version record is reported and repeated, and acquires go on meanwhile', async () => {
    const limiter = await space.open(LIMITS);
    await limiter.acquire(ASK);
    await space.clock.advance(60_000);
    const failing = world.proxy.inject(fault.accessDenied(), {
      when: ({ body }) => JSON.stringify(body).includes(VERSION_KEY.SK),
    });
    await limiter.acquire(ASK);
    await expect.poll(() => space.errors).toMatchObject([{ code: 'backend.denied' }]);
    await limiter.acquire(ASK);
    expect(space.errors).toHaveLength(1);
    failing.release();
    await raise();
    await space.clock.advance(5_000);
    const before = versionReads();
    await limiter.acquire(ASK);
    await expect.poll(versionReads).toBe(before + 1);
  });

  test('two upgrades at the same time raise the version once, and a third changes nothing', async () => {
    const raised = await Promise.all([raise(), raise()]);
    expect(raised.toSorted()).toEqual([false, true]);
    const after = await record();
    expect(after).toMatchObject({ schema_version: { N: '2' }, min_client_version: { N: '2' } });
    await space.clock.advance(1_000);
    expect(await raise()).toBe(false);
    expect(await record()).toEqual(after);
  });

  test('`headgate migrate` raises a table that no stack deployed, and a dry run does not', async () => {
    const { endpoint, region } = world.engine;
    const options = { tableName: world.table.name, endpoint, region };
    expect(await runMigrations({ ...options, dryRun: true })).toMatchObject({ from: 1, to: 1, raisesTo: 2 });
    expect(await runMigrations({ ...options, raise: false })).toMatchObject({ from: 1, to: 1 });
    expect(await record()).toMatchObject({ schema_version: { N: '1' } });
    expect(await runMigrations(options)).toMatchObject({ from: 1, to: 2, migrations: [] });
    expect(await runMigrations(options)).toMatchObject({ from: 2, to: 2, raisesTo: null, migrations: [] });
    expect(await checkSchema(world.table, deadlineIn(5_000))).toMatchObject({ version: 2 });
  });

  describe('the gate of features', () => {
    test('features that need version 2 are refused on a table of version 1 with the commands that raise it', async () => {
      const gate = createVersionGate(world.table);
      gate.remember(await checkSchema(world.table, deadlineIn(5_000)));
      await expect(gate.require(call(), 'a pause')).rejects.toMatchObject({
        code: 'schema.mismatch',
        command: 'headgate upgrade --table headgate-world',
        message:
          'Table headgate-world has schema version 1, and a pause needs 2 (for a table without a stack: headgate migrate --store dynamodb://headgate-world). Run: headgate upgrade --table headgate-world',
      });
    });

    test('features that need version 2 work at once, and without a read, on a table that was created with version 2', async () => {
      await putVersion(2);
      const gate = createVersionGate(world.table);
      gate.remember(await checkSchema(world.table, deadlineIn(5_000)));
      expect(gate.require(call(), 'a pause')).toBeUndefined();
    });

    test('features that need version 2 work on a raised table once no older client can still write, and the raise is noticed at the next use', async () => {
      const gate = createVersionGate(world.table);
      gate.remember(await checkSchema(world.table, deadlineIn(5_000)));
      await raise();
      await expect(gate.require(call(), 'a pause')).rejects.toMatchObject({
        code: 'infrastructure.upgrading',
        retryable: true,
      });
      await space.clock.advance(149_999);
      expect(() => gate.require(call(), 'a pause')).toThrow(/a pause works from .* on/);
      await space.clock.advance(1);
      expect(gate.require(call(), 'a pause')).toBeUndefined();
    });
  });
});
