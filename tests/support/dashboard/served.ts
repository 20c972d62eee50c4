import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { createTable, dynamodb } from '../../../src/backends/dynamodb/index.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import type { AccessToken } from '../../../src/server/access/access-token.js';
import { type FaultProxy, startEngine, startFaultProxy } from '../../../src/testing/dynamodb/index.js';
import { fakeClock } from '../../../src/testing/fake-clock.js';

const TABLE = 'headgate-dashboard';

/** The program, from the root of the repository: tests and scripts run there. */
const PROGRAM = 'dist/cli/main.js';

export interface Served extends AsyncDisposable {
  /** Such as `http://127.0.0.1:40123`. */
  readonly url: string;
  readonly dashboard: string;
  /** Between the server and the engine. The limiters of this process reach the engine without it. */
  readonly proxy: FaultProxy;
  /** A limiter on the same table, in this process. */
  readonly limiter: RateLimiter;
  /** A limiter on the same table whose clock shows the given time. */
  limiterAt(nowMs: number): Promise<RateLimiter>;
  /** Counts the usage of everything that was taken so far. */
  countUsage(): Promise<void>;
}

/** Runs `headgate serve` on a DynamoDB engine, as a process of its own. */
export async function startServed(tokens: readonly AccessToken[] = []): Promise<Served> {
  const engine = await startEngine('dynoxide');
  const { endpoint, region, credentials } = engine;
  const client = new DynamoDBClient({ endpoint, region, credentials });
  await createTable({ tableName: TABLE, client });
  const folder = mkdtempSync(join(tmpdir(), 'headgate-dashboard-'));
  const proxy = await startFaultProxy(endpoint);
  const store = `dynamodb://${TABLE}?region=${region}&endpoint=${proxy.endpoint}`;
  const env = {
    ...process.env,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    HEADGATE_LEASE_SECRET: 'a-secret-of-tests-that-is-long-enough',
  };
  const file = join(folder, 'tokens.json');
  writeFileSync(file, JSON.stringify(tokens), { mode: 0o600 });
  const access = tokens.length === 0 ? [] : ['--tokens', file];
  const server = spawn(process.execPath, [PROGRAM, 'serve', '--port', '0', '--store', store, '--json', ...access], {
    env,
  });
  const ended = new Promise((resolve) => server.once('exit', resolve));
  const line = await new Promise<string>((resolve, reject) => {
    let errors = '';
    server.stderr.on('data', (text) => (errors += String(text)));
    server.once('exit', () => reject(new Error(`headgate serve ended early: ${errors}`)));
    createInterface({ input: server.stdout }).once('line', resolve);
  });
  const { url, dashboard } = JSON.parse(line) as { readonly url: string; readonly dashboard: string };
  const limiter = await RateLimiter.open(dynamodb({ tableName: TABLE, client }), { principal: 'operator' });
  return {
    url,
    dashboard,
    proxy,
    limiter,
    limiterAt: (nowMs) => RateLimiter.open(dynamodb({ tableName: TABLE, client }), { clock: fakeClock(nowMs) }),
    async countUsage() {
      await promisify(execFile)(process.execPath, [PROGRAM, 'worker', '--store', store, '--once'], { env });
    },
    async [Symbol.asyncDispose]() {
      server.kill('SIGTERM');
      await ended;
      await limiter.close();
      client.destroy();
      await proxy.stop();
      await engine.stop();
      rmSync(folder, { recursive: true });
    },
  };
}
