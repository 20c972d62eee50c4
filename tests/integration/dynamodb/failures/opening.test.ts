import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CreateTableCommand, DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDynamoDBBackend } from '../../../../src/backends/dynamodb/dynamodb.js';
import { createTable, dynamodb } from '../../../../src/backends/dynamodb/index.js';
import { tableDefinition } from '../../../../src/backends/dynamodb/table/table-definition.js';
import { Limit } from '../../../../src/core/limit.js';
import type { LimiterOptions } from '../../../../src/limiter/options.js';
import { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { fault } from '../../../../src/testing/dynamodb/index.js';
import { fakeClock } from '../../../../src/testing/fake-clock.js';
import type { HolderOrder } from '../../../support/processes/holder.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../../support/dynamodb/world.js';
import { ended, forkable } from '../../../support/processes/fork-bundled.js';

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
const LIMITS = { limits: [Limit.perMinute('rpm', 60)] };
const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };

describe.skipIf(ENGINE.missing)(`opening a table${ENGINE.note}`, () => {
  let world: DynamoWorld;
  let client: DynamoDBClient;
  const opened: RateLimiter[] = [];

  beforeAll(async () => {
    world = await startWorld();
    const { endpoint, region, credentials } = world.engine;
    client = new DynamoDBClient({ endpoint, region, credentials });
  });
  afterAll(async () => {
    for (const limiter of opened) await limiter.close();
    client?.destroy();
    await world?.[Symbol.asyncDispose]();
  });

  const address = (table: string, more = ''): string =>
    `dynamodb://${table}?region=${world.engine.region}&endpoint=${world.proxy.endpoint}${more}`;
  const open = async (store: Parameters<typeof RateLimiter.open>[0] | string, options: LimiterOptions = LIMITS) => {
    const limiter = await RateLimiter.open(store as string, options);
    opened.push(limiter);
    return limiter;
  };

  describe('tables that are not ready', () => {
    const versioned = async (name: string, fields: Record<string, { N: string }>): Promise<void> => {
      await createTable({ tableName: name, client });
      const Item = { PK: { S: '_/SYSTEM#' }, SK: { S: '#VERSION' }, ...fields };
      await client.send(new PutItemCommand({ TableName: name, Item }));
    };

    test('a missing table is refused with the command that creates it', async () => {
      await expect(open(address('nowhere'))).rejects.toMatchObject({
        code: 'schema.mismatch',
        command: 'headgate deploy --table nowhere',
        message: 'DynamoDB has no table nowhere. Run: headgate deploy --table nowhere',
      });
    });

    test('an unfinished table is refused with the command that finishes it', async () => {
      await client.send(new CreateTableCommand(tableDefinition('unfinished')));
      await expect(open(address('unfinished'))).rejects.toMatchObject({
        code: 'schema.mismatch',
        command: 'headgate deploy --table unfinished',
      });
    });

    test('a table of an older or newer version is refused with the command that helps', async () => {
      await versioned('older', { schema_version: { N: '0' } });
      await expect(open(address('older'))).rejects.toMatchObject({
        command: `headgate migrate --store '${address('older')}'`,
      });
      await versioned('newer', { schema_version: { N: '9' }, min_client_version: { N: '9' } });
      await expect(open(address('newer'))).rejects.toMatchObject({ command: 'npm install headgate@latest' });
    });

    test('the outage policy does not admit calls to a missing table', async () => {
      const limiter = new RateLimiter(address('nowhere'), { ...LIMITS, onUnavailable: 'allow' });
      await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject({ code: 'schema.mismatch' });
    });
  });

  test('an unknown namespace is refused and not created', async () => {
    await expect(open(address(world.table.name), { namespace: 'misspelt' })).rejects.toMatchObject({
      code: 'namespace.missing',
    });
    expect(await (await open(address(world.table.name))).namespaces.get('misspelt')).toBeNull();
  });

  test('opening a limiter writes nothing, and constructing one sends no request', async () => {
    world.proxy.requests.clear();
    const limiter = new RateLimiter(address(world.table.name), LIMITS);
    expect(world.proxy.requests.count()).toBe(0);
    await open(address(world.table.name));
    expect(world.proxy.requests.byOperation()).toEqual({ GetItem: 2 });
    await limiter.acquire(ASK);
    await limiter.close();
  });

  describe('store addresses', () => {
    test('an address names table, region, endpoint and namespace, and options override it', async () => {
      const space = await world.space();
      const other = await world.space();
      const at = address(world.table.name, `&namespace=${space.namespace}`);
      await (await open(at, { ...LIMITS, clock: space.clock })).acquire(ASK);
      expect((await space.shards('user-1', 'gpt-4'))[0]?.acquires).toBe(1);
      await (await open(at, { ...LIMITS, namespace: other.namespace })).acquire(ASK);
      expect((await other.shards('user-1', 'gpt-4'))[0]?.acquires).toBe(1);
    });

    test.each([
      'dynamodb://',
      'dynamodb:my-table',
      'dynamodb://my table',
      'dynamodb://ab',
      'dynamodb://my-table?regoin=eu-west-1',
      'dynamodb://my-table?endpoint=localhost',
      'dynamodb://my-table?endpoint=ftp://127.0.0.1:8000',
      'dynamodb://my-table?namespace=a%20b',
      'dynamodb://my-table?region=eu-west-1?namespace=acme',
    ])('the malformed address %s is refused at once', async (wrong) => {
      await expect(open(wrong)).rejects.toMatchObject({ code: 'input.invalid' });
    });

    test('an endpoint without a listener is an outage', async () => {
      const at = `dynamodb://my-table?region=eu-west-1&endpoint=http://127.0.0.1:9`;
      // Long enough for a busy machine to be refused the connection before the deadline.
      const timeouts = { callMs: 10_000, openMs: 2_000 };
      const opening = open(at, { ...LIMITS, timeouts });
      await expect(opening).rejects.toMatchObject({ code: 'backend.unavailable', kind: 'connection' });
    });
  });

  describe('clients of the caller', () => {
    const reach = () => {
      const { region, credentials } = world.engine;
      return { region, credentials, endpoint: world.proxy.endpoint };
    };

    test('a client of the caller is used unchanged, and stays open when the limiter is closed', async () => {
      const own = new DynamoDBClient(reach());
      const limiter = await open(dynamodb({ table: world.table.name, client: own }));
      await limiter.acquire(ASK);
      await limiter.close();
      const next = await open(dynamodb({ table: world.table.name, client: own }));
      expect(await next.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'store' });
      own.destroy();
    });

    test('a client of the caller that retries by itself charges once', async () => {
      const space = await world.space();
      const own = new DynamoDBClient({ ...reach(), maxAttempts: 3 });
      const { namespace, clock } = space;
      const limiter = await open(dynamodb({ table: world.table.name, client: own }), { ...LIMITS, namespace, clock });
      await limiter.acquire(ASK);
      world.proxy.requests.clear();
      const lost = world.proxy.inject(fault.loseAnswer(), { operations: ['UpdateItem'], times: 1 });
      const lease = await limiter.acquire({ ...ASK, consume: { rpm: 10 } });
      expect([lost.fired, world.proxy.requests.count('UpdateItem')]).toEqual([1, 2]);
      const again = world.proxy.inject(fault.loseAnswer(), { operations: ['UpdateItem'], times: 1 });
      await lease.rollback();
      expect(again.fired).toBe(1);
      const [shard] = await space.shards('user-1', 'gpt-4');
      expect(shard).toMatchObject({ acquires: 2, limits: [{ tokensMilli: 59_000, consumedMilli: 1_000 }] });
      own.destroy();
    });

    test('a client that two limiters share gives the time of the store to both', async () => {
      const own = new DynamoDBClient(reach());
      const stores = [0, 1].map(() => dynamodb({ table: world.table.name, client: own }));
      for (const store of stores) await open(store);
      const shifted = world.proxy.inject(fault.shiftDate(300_000));
      for (const store of stores) await store.namespaces.read({ nowMs: 0, timeoutMs: 5_000 }, 'default');
      for (const store of stores) {
        expect(Math.round(((store.storeTimeMs?.() ?? 0) - Date.now()) / 10_000)).toBe(30);
      }
      shifted.release();
      own.destroy();
    });
  });

  test('the first acquire uses the connection that the opening made', async () => {
    let connections = 0;
    const engine = new URL(world.engine.endpoint);
    const relay = createServer((socket) => {
      connections += 1;
      const onward = connect(Number(engine.port), engine.hostname);
      socket.pipe(onward).pipe(socket);
      for (const end of [socket, onward]) end.on('error', () => end.destroy());
    }).listen(0, '127.0.0.1');
    await once(relay, 'listening');
    const { port } = relay.address() as AddressInfo;
    const { region } = world.engine;
    const endpoint = `http://127.0.0.1:${port}`;
    const limiter = await open(dynamodb({ table: world.table.name, region, endpoint }));
    expect(connections).toBe(1);
    await limiter.acquire(ASK);
    await limiter.acquire(ASK);
    expect(connections).toBe(1);
    await limiter.close();
    relay.close();
  });

  test('a table that several callers create at the same time can be used', async () => {
    const options = { tableName: 'made-by-many', endpoint: world.engine.endpoint, region: world.engine.region };
    await Promise.all([createTable(options), createTable(options), createTable(options)]);
    await createTable(options);
    const limiter = await open(address('made-by-many'));
    expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'store' });
  });

  test('the time that the SDK takes to load does not count as time of the store', async () => {
    const clock = fakeClock();
    const loadSdk = async () => {
      await clock.advance(60_000);
      return import('@aws-sdk/client-dynamodb');
    };
    const backend = createDynamoDBBackend({ table: world.table.name, client }, { loadSdk });
    await using limiter = await RateLimiter.open(backend, { clock });
    expect(await limiter.ping()).toMatchObject({ ok: true });
  });

  describe('separate processes', () => {
    test('an open limiter with open leases does not keep its process alive', async () => {
      const start = await forkable(new URL('../../../support/processes/holder.ts', import.meta.url));
      const { endpoint, region } = world.engine;
      const order: HolderOrder = { table: world.table.name, region, endpoint, slots: 2, takes: 2, waits: false };
      expect(await ended(start(JSON.stringify(order)))).toBe(0);
    });

    test('without the SDK a table opens, and the error names what the environment lacks', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'headgate-no-peer-'));
      const outfile = join(folder, 'open.mjs');
      await build({
        stdin: {
          contents: `import { RateLimiter } from './src/index.ts';
            const opened = await RateLimiter.open(process.argv[2]).catch((thrown) => thrown);
            console.log(JSON.stringify({ code: opened.code, message: opened.message }));
            await opened.close?.();`,
          resolveDir: ROOT,
          loader: 'ts',
        },
        bundle: true,
        outfile,
        format: 'esm',
        platform: 'node',
        target: 'node20',
        external: ['libsql', '@aws-sdk/*'],
      });
      const openAlone = (url: string, env: Record<string, string>): unknown => {
        const options = { encoding: 'utf8', cwd: folder, timeout: 20_000, env } as const;
        return JSON.parse(execFileSync(process.execPath, [outfile, url], options));
      };
      const keys = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' };
      const { endpoint, region } = world.engine;
      const store = `dynamodb://${world.table.name}?region=${region}&endpoint=${endpoint}`;
      expect(openAlone(store, keys)).toEqual({});
      expect(openAlone('dynamodb://my-table?region=eu-west-1', {})).toEqual({
        code: 'infrastructure.missing-peer',
        message:
          'The environment has no AWS credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, without AWS_PROFILE), and the AWS SDK, which finds others, is not installed. Run: npm install @aws-sdk/credential-providers',
      });
      expect(openAlone('dynamodb://my-table', keys)).toMatchObject({ code: 'input.invalid' });
      rmSync(folder, { recursive: true });
    });
  });
});
