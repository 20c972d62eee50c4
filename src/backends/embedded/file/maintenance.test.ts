import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { cleanLargeFile } from '../../../../tests/support/clean-large-file.js';
import { Limit } from '../../../core/limit.js';
import { RateLimiter } from '../../../limiter/rate-limiter.js';
import { fakeClock } from '../../../testing/fake-clock.js';
import { loadDriver } from './database/driver.js';
import { file } from './file.js';

const folder = mkdtempSync(join(tmpdir(), 'headgate-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const DAY_MS = 86_400_000;

async function rowsOf(path: string, table: string): Promise<number> {
  const database = (await loadDriver()).open(path);
  const count = Number(database.prepare(`SELECT count(*) FROM ${table}`).get()?.[0]);
  database.close();
  return count;
}

async function openFile(name: string) {
  const clock = fakeClock();
  const path = join(folder, name);
  const limiter = await RateLimiter.open(file({ path }), { limits: [Limit.perMinute('rpm', 60)], clock });
  const visit = (n: number) => limiter.acquire({ entityId: `visitor-${n}`, resource: 'gpt-4', consume: { rpm: 1 } });
  return { clock, path, limiter, visit };
}

test(
  'usage, audit records and receipts count until they expire, and are removed afterwards',
  { timeout: 60_000 },
  async () => {
    const { clock, path, limiter, visit } = await openFile('old.db');
    await limiter.entities.create({ id: 'visitor-1' });
    await visit(1);
    await limiter.charge({ entityId: 'visitor-1', resource: 'gpt-4', amounts: { rpm: 1 }, id: 'a' });
    await clock.advance(DAY_MS);
    await visit(1);
    await clock.advance(89 * DAY_MS - 3_600_000);
    expect((await limiter.usage.query({ resource: 'gpt-4', window: 'hourly' })).items).toHaveLength(2);
    expect((await limiter.audit.list()).items).toHaveLength(1);
    await clock.advance(DAY_MS);
    expect((await limiter.usage.query({ resource: 'gpt-4', window: 'hourly' })).items).toHaveLength(1);
    expect((await limiter.audit.list()).items).toHaveLength(0);
    expect((await limiter.usage.query({ resource: 'gpt-4', window: 'daily' })).items).toHaveLength(2);
    for (let n = 0; n < 1_000; n++) await limiter.acquire({ entityId: 'x', resource: 'other', consume: { rpm: 0 } });
    expect(await rowsOf(path, 'audit')).toBe(0);
    expect(await rowsOf(path, 'receipts')).toBe(0);
    await limiter.close();
  },
);

test('the usage of a bucket that keeps only leases that have ended counts once, however often it is cleaned', async () => {
  const { clock, path, limiter } = await openFile('large.db');
  await limiter.config.setSystem({ limits: [Limit.perDay('rpm', 10)] });
  const key = { entityId: 'a', resource: 'gpt-4' };
  await (await limiter.acquire({ ...key, consume: { rpm: 5 }, portable: true })).commit();
  await clock.advance(3_600_000);
  await cleanLargeFile(path, clock.now());
  await cleanLargeFile(path, clock.now());
  const { items } = await limiter.usage.query({ ...key, window: 'hourly' });
  expect(items).toMatchObject([{ tokens: { rpm: 5 }, acquires: 1 }]);
  await limiter.close();
});
