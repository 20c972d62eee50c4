import { mkdtempSync, readdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { loadDriver } from '../src/backends/embedded/file/driver.js';
import { file } from '../src/backends/embedded/file/file.js';
import { Limit } from '../src/core/limit.js';
import { RateLimiter } from '../src/limiter/rate-limiter.js';

const d = mkdtempSync(join(tmpdir(), 'exp-'));
const limits = [Limit.perMinute('rpm', 60)];
const ask = { entityId: 'a', resource: 'r', consume: { rpm: 1 } };
const t = async (name: string, f: () => Promise<unknown>) => {
  const s = performance.now();
  try { console.log(name, '->', await f(), performance.now() - s); } catch (e: any) { console.log(name, 'THROWS', e?.constructor?.name, e?.code, e?.kind, e?.message, performance.now() - s); }
};
test('x', async () => {
  console.log(process.version);
  const path = join(d, 'x.db');
  const l = await RateLimiter.open(file({ path }), { limits, timeouts: { callMs: 200, acquireMs: 400 }, onUnavailable: 'allow' });
  const lease = await l.acquire(ask);
  const driver = await loadDriver();
  const other = driver.open(path);
  other.exec('BEGIN IMMEDIATE');
  for (let i = 0; i < 3; i++) await t('acquire', async () => { const r = await l.tryAcquire(ask); return [r.granted, r.granted ? '' : r.reason, r.decidedBy]; });
  await t('adjust', () => lease.adjust({ rpm: 1 }));
  await t('config', () => l.config.setSystem({ limits }));
  await t('reg', () => l.namespaces.register('acme'));
  other.exec('COMMIT'); other.close();
  await l.close();
  console.log(readdirSync(d).map((f) => [f, statSync(join(d, f)).size]));
  for (const k of ['reads', 'writes', 'error']) {
    const p = join(d, k);
    const m = await RateLimiter.open(file({ path: p }), { limits });
    await m.tryAcquire(ask);
    if (k === 'reads') { await m.entities.list(); await m.buckets.get(ask); }
    if (k === 'writes') await m.entities.create({ id: 'q' });
    if (k === 'error') await m.entities.delete('zz').catch(() => {});
    await m.close();
    console.log(k, readdirSync(d).filter((f) => f.startsWith(k)));
  }
});
