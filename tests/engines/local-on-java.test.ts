import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createTable } from '../../src/backends/dynamodb/index.js';
import { startDetached } from '../../src/local/start-detached.js';
import { readStatus, stopLocal } from '../../src/local/local.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { findProgram } from '../../src/local/engine/engine-programs.js';
import { freePort } from '../../src/local/engine/free-port.js';

const program = findProgram('dynamodb-local', [import.meta.dirname]);

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-local-java-'));
});
afterEach(async () => {
  await stopLocal(folder, { purge: true });
  rmSync(folder, { recursive: true, force: true });
});

test.skipIf(program.status !== 'available')('DynamoDB Local keeps what `headgate local` stores', async () => {
  if (program.status !== 'available') return;
  const plan = {
    engine: 'dynamodb-local',
    program,
    folder,
    port: await freePort(),
    data: join(folder, 'kept'),
    before: null,
  } as const;
  const first = await startDetached(plan);
  const tableName = 'headgate-local';
  await createTable({ tableName, endpoint: `http://127.0.0.1:${plan.port}` });
  expect(await readStatus(folder)).toMatchObject({ running: true, answers: true, pid: first?.pid });
  expect(await stopLocal(folder, { purge: false })).toMatchObject({ pid: first?.pid });
  expect(await startDetached(plan)).toMatchObject({ port: plan.port });
  await using limiter = await RateLimiter.open(`dynamodb://${tableName}?endpoint=http://127.0.0.1:${plan.port}`, {
    timeouts: { callMs: 10_000 },
  });
  expect((await limiter.namespaces.get('default'))?.status).toBe('active');
  await stopLocal(folder, { purge: true });
  expect(readdirSync(folder)).toEqual([]);
});
