import { GetItemCommand, PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { type EngineName, findEngine, startEngine } from '../../src/testing/dynamodb/index.js';
import { clientOf, makeTable, TABLE } from '../support/dynamodb/table.js';
import { ended, forkable } from '../support/processes/fork-bundled.js';

const why = (found: ReturnType<typeof findEngine>): string =>
  found.status === 'unavailable' ? ` (skipped: ${found.reason})` : '';

afterEach(() => vi.unstubAllEnvs());

describe.each<EngineName>(['dynoxide', 'extenddb', 'dynamodb-local'])('the engine %s', (name) => {
  const found = findEngine(name);

  test.skipIf(found.status === 'unavailable')(
    `the engine ${name} starts empty, serves items, and ends when it is stopped${why(found)}`,
    async () => {
      const engine = await startEngine(name);
      const client = clientOf(engine, engine.endpoint);
      await makeTable(client);
      await client.send(
        new PutItemCommand({ TableName: TABLE, Item: { PK: { S: 'a' }, n: { N: '9007199254740993' } } }),
      );
      const { Item } = await client.send(
        new GetItemCommand({ TableName: TABLE, Key: { PK: { S: 'a' } }, ConsistentRead: true }),
      );
      expect(Item).toEqual({ PK: { S: 'a' }, n: { N: '9007199254740993' } });

      const failing = client.send(
        new UpdateItemCommand({
          TableName: TABLE,
          Key: { PK: { S: 'a' } },
          UpdateExpression: 'ADD n :one',
          ConditionExpression: 'n < :one',
          ExpressionAttributeValues: { ':one': { N: '1' } },
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        }),
      );
      await expect(failing).rejects.toMatchObject({ name: 'ConditionalCheckFailedException', Item });
      client.destroy();

      const { pid } = engine;
      await engine.stop();
      expect(() => process.kill(pid!, 0)).toThrow('ESRCH');
    },
  );
});

const dynoxide = findEngine('dynoxide');

describe.skipIf(dynoxide.status === 'unavailable')(`engines of test files${why(dynoxide)}`, () => {
  test('several engines run at the same time, each with separate tables', async () => {
    const engines = await Promise.all(Array.from({ length: 3 }, () => startEngine('dynoxide')));
    expect(new Set(engines.map(({ endpoint }) => endpoint)).size).toBe(3);
    // The same table can be created in each engine.
    for (const engine of engines) {
      const client = clientOf(engine, engine.endpoint);
      await makeTable(client);
      client.destroy();
    }
    await Promise.all(engines.map((engine) => engine.stop()));
  });

  test('an engine that another process started is used and never stopped', async () => {
    const owned = await startEngine('dynoxide');
    vi.stubEnv('HEADGATE_TEST_ENDPOINT', `${owned.endpoint}/`);
    const foreign = await startEngine();
    expect(foreign).toMatchObject({ name: 'endpoint', endpoint: owned.endpoint, pid: null });
    await foreign.stop();
    const client = clientOf(foreign, foreign.endpoint);
    await expect(makeTable(client)).resolves.toBeUndefined();
    client.destroy();
    await owned.stop();
  });

  describe('engines whose parent process ends', () => {
    let fork: (...args: readonly string[]) => ChildProcess;
    beforeAll(async () => {
      fork = await forkable(new URL('./engine-parent.ts', import.meta.url));
    });

    async function engineOf(parent: ChildProcess): Promise<URL> {
      const [{ endpoint }] = (await once(parent, 'message')) as [{ endpoint: string }];
      return new URL(endpoint);
    }

    /** The result of a new connection. */
    const connecting = ({ port, hostname }: URL): Promise<string | undefined> =>
      new Promise((resolve) => {
        const socket = connect(Number(port), hostname)
          .once('connect', () => {
            socket.destroy();
            resolve('connected');
          })
          .once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
      });

    test('an engine ends when its parent process is killed with -9', async () => {
      const parent = fork();
      const engine = await engineOf(parent);
      expect(await connecting(engine)).toBe('connected');
      parent.kill('SIGKILL');
      expect(await ended(parent)).toBe('SIGKILL');
      await expect.poll(() => connecting(engine)).toBe('ECONNREFUSED');
    });

    test('an engine ends when its parent process exits, and does not keep it alive', async () => {
      const parent = fork('leave');
      const engine = await engineOf(parent);
      expect(await ended(parent)).toBe(0);
      await expect.poll(() => connecting(engine)).toBe('ECONNREFUSED');
    });
  });
});

describe('engines that cannot be started', () => {
  const folders: string[] = [];
  const emptyFolder = (): string => {
    folders.push(mkdtempSync(join(tmpdir(), 'headgate-engines-')));
    return folders.at(-1)!;
  };
  afterEach(() => {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
  });

  test('an engine that fails to start is reported with its last output', async () => {
    const folder = emptyFolder();
    const home = join(folder, `node_modules/@dynoxide/${process.platform}-${process.arch}`);
    mkdirSync(home, { recursive: true });
    writeFileSync(join(home, 'package.json'), '{}');
    writeFileSync(join(home, 'dynoxide'), '#!/bin/sh\necho no memory left >&2\nexit 3\n', { mode: 0o755 });
    await expect(startEngine('dynoxide', { folder })).rejects.toMatchObject({
      code: 'infrastructure.engine-unavailable',
      message: expect.stringMatching(/dynoxide did not start.*ended with code 3: no memory left/s),
    });
  });

  test('an engine that is not installed is reported with the command to install it', async () => {
    await expect(startEngine('dynoxide', { folder: emptyFolder() })).rejects.toMatchObject({
      code: 'infrastructure.engine-unavailable',
      message: expect.stringContaining('npm i -D @dynoxide/'),
    });
  });
});
