import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { loadDriver, type SqliteDatabase } from '../../../src/backends/embedded/file/database/driver.js';
import { file } from '../../../src/backends/embedded/file/file.js';
import type { OnUnavailable } from '../../../src/core/config/config.js';
import type { LimiterOptions } from '../../../src/limiter/options.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { ASK, ASK_SLOT, LIMITS } from '../../support/models/open-limiter.js';

const folder = mkdtempSync(join(tmpdir(), 'headgate-busy-'));
/** Real time, because SQLite holds the lock. */
const SOON = { callMs: 150, acquireMs: 300 };
const CONTENDED = { code: 'backend.unavailable', kind: 'contended' };

let files = 0;
let path: string;
let limiter: RateLimiter;
/** A second connection, which SQLite treats like another process. */
let other: SqliteDatabase;

afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach(async () => {
  path = join(folder, `${files++}.db`);
  limiter = await open({});
  await limiter.acquire(ASK);
  other = (await loadDriver()).open(path);
  other.exec('BEGIN IMMEDIATE');
});
afterEach(async () => {
  other.close();
  await limiter.close();
});

function open(options: LimiterOptions): Promise<RateLimiter> {
  return RateLimiter.open(file({ path }), { limits: LIMITS, ...options });
}

/** Counts the turns of the event loop until the work has ended, at most `most`. */
async function turnsDuring(work: Promise<unknown>, most: number): Promise<number> {
  const ended = new AbortController();
  const end = (): void => ended.abort();
  work.then(end, end);
  let turns = 0;
  for (; !ended.signal.aborted && turns < most; turns++) await new Promise((resolve) => setImmediate(resolve));
  return turns;
}

test('a call that waits for the lock leaves the event loop free, and is granted once the lock is released', async () => {
  const pending = limiter.tryAcquire(ASK);
  expect(await turnsDuring(pending, 1_000)).toBe(1_000);
  other.exec('COMMIT');
  expect(await pending).toMatchObject({ granted: true, decidedBy: 'store' });
  expect((await limiter.buckets.get(ASK))?.acquires).toBe(2);
});

test('a hundred calls that wait for the lock are all served once it is released, none twice', async () => {
  const pending = Array.from({ length: 100 }, () => limiter.tryAcquire({ ...ASK, consume: { rpm: 1 } }));
  await turnsDuring(Promise.all(pending), 100);
  other.exec('COMMIT');
  const granted = (await Promise.all(pending)).filter((decision) => decision.granted);
  expect(granted).toHaveLength(59);
  expect((await limiter.buckets.get(ASK))?.acquires).toBe(60);
});

test('reading a file needs no lock', async () => {
  expect(await limiter.available(ASK)).toMatchObject({ slots: 2 });
  expect(await limiter.config.get('system')).toBeNull();
  const late = await open({ timeouts: SOON });
  expect(await late.available(ASK)).toMatchObject({ slots: 2 });
  await late.close();
});

test.each<[string, LimiterOptions, { onUnavailable?: OnUnavailable }]>([
  ['', {}, {}],
  [' where the policy allows', { onUnavailable: 'allow' }, {}],
  [' where the policy is local', { onUnavailable: 'local' }, {}],
  [' where the call allows', {}, { onUnavailable: 'allow' }],
])('a lock that is never released denies acquires as contended%s', async (_, options, own) => {
  const patient = await open({ timeouts: SOON, ...options });
  const decisions = await Promise.all(Array.from({ length: 8 }, () => patient.tryAcquire({ ...ASK_SLOT, ...own })));
  const denied = {
    granted: false,
    reason: 'contended',
    retryAfterMs: 100,
    statuses: [],
    violations: [],
    decidedBy: 'store',
  };
  expect(decisions).toEqual(decisions.map(() => denied));
  // Contention is an answer of the store, so the breaker stays closed.
  other.exec('COMMIT');
  expect(await patient.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'store' });
  expect((await patient.buckets.get(ASK))?.acquires).toBe(2);
  await patient.close();
});

test('a lock that is never released fails other writes as contended, and they do not land later', async () => {
  other.exec('COMMIT');
  const patient = await open({ timeouts: SOON, onUnavailable: 'allow' });
  const lease = await patient.acquire(ASK_SLOT);
  other.exec('BEGIN IMMEDIATE');
  const writes = [
    lease.adjust({ tpm: 1_000 }),
    patient.config.setSystem({ limits: LIMITS }),
    patient.entities.create({ id: 'user-1' }),
    patient.namespaces.register('acme'),
    patient.buckets.reset(ASK),
  ];
  const seen = await Promise.all(writes.map((write) => write.catch((error: unknown) => error)));
  expect(seen).toEqual(writes.map(() => expect.objectContaining(CONTENDED)));
  other.exec('COMMIT');
  await turnsDuring(new Promise(() => {}), 100);
  expect(await patient.audit.list()).toEqual({ items: [], next: null });
  expect((await patient.buckets.get(ASK))?.limits.map(({ consumed }) => consumed)).toEqual([2, 1_000, 1]);
  // The lease still has its amounts, and can be ended.
  await lease.rollback();
  expect((await patient.buckets.get(ASK))?.limits.map(({ consumed }) => consumed)).toEqual([1, 500, 0]);
  await patient.close();
});

test('a file that another process is creating is waited for', async () => {
  other.exec('COMMIT');
  other.close();
  const fresh = join(folder, `fresh-${files++}.db`);
  other = (await loadDriver()).open(fresh);
  other.exec('BEGIN IMMEDIATE');
  const first = await RateLimiter.open(file({ path: fresh }), { limits: LIMITS });
  const pending = first.tryAcquire(ASK);
  expect(await turnsDuring(pending, 100)).toBe(100);
  other.exec('COMMIT');
  expect(await pending).toMatchObject({ granted: true });
  await first.close();
});

test('closing a limiter ends its wait for the lock', async () => {
  const pending = limiter.tryAcquire(ASK).catch((error: unknown) => error);
  await limiter.close();
  expect(await pending).toMatchObject({ code: 'backend.unavailable', kind: 'closed' });
  other.exec('COMMIT');
});
