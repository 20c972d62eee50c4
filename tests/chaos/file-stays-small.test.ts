import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { loadDriver } from '../../src/backends/embedded/file/database/driver.js';
import { file } from '../../src/backends/embedded/file/file.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { fakeClock } from '../../src/testing/fake-clock.js';

const folder = mkdtempSync(join(tmpdir(), 'headgate-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('a file with many one-shot entities stops growing, and keeps their usage', async () => {
  const clock = fakeClock();
  const path = join(folder, 'many.db');
  const limiter = await RateLimiter.open(file({ path }), { limits: [Limit.perMinute('rpm', 60)], clock });
  for (let n = 0; n < 24_000; n++) {
    await limiter.acquire({ entityId: `visitor-${n}`, resource: 'gpt-4', consume: { rpm: 1 } });
    clock.set(clock.now() + 10);
  }
  const database = (await loadDriver()).open(path);
  expect(Number(database.prepare('SELECT count(*) FROM buckets').get()?.[0])).toBeLessThan(13_000);
  database.close();
  const { acquires } = await limiter.usage.summary({ resource: 'gpt-4', window: 'monthly' });
  expect(acquires).toBe(24_000);
  await limiter.close();
});
