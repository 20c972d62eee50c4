import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Limit, RateLimiter } from 'headgate';
import { fakeClock } from 'headgate/testing';
import { afterAll, expect, test } from 'vitest';
import { journal } from './journal-store.js';

const folder = mkdtempSync(join(tmpdir(), 'headgate-journal-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('a journal store that is opened again has the balances, the leases and the limits of before', async () => {
  const clock = fakeClock();
  const path = join(folder, randomUUID());
  const ask = { entityId: 'ada', resource: 'gpt-4', consume: { rpm: 40, slots: 1 } };
  const first = await RateLimiter.open(journal(path), { clock });
  await first.config.setResource('gpt-4', { limits: [Limit.perMinute('rpm', 60), Limit.concurrent('slots', 1)] });
  await first.acquire(ask); // never ended: the process is killed here

  writeFileSync(path, '["consume",[{"half":', { flag: 'a' });
  const second = await RateLimiter.open(journal(path), { clock });
  expect(await second.tryAcquire(ask)).toMatchObject({ granted: false, retryAfterMs: 60_000 });
  await clock.advance(60_000); // the lease of the killed process has expired
  expect((await second.tryAcquire(ask)).granted).toBe(true);
  const third = await RateLimiter.open(journal(path), { clock });
  expect(await third.available(ask)).toMatchObject({ rpm: 20, slots: 0 });
  for (const limiter of [first, second, third]) await limiter.close({ leases: 'keep' });
});
