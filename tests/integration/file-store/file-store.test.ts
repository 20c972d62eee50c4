import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { createEmbeddedBackend } from '../../../src/backends/embedded/embedded-backend.js';
import { loadDriver, type SqliteDatabase } from '../../../src/backends/embedded/file/database/driver.js';
import { FileStorage } from '../../../src/backends/embedded/file/file-storage.js';
import { file } from '../../../src/backends/embedded/file/file.js';
import { memory } from '../../../src/backends/embedded/memory.js';
import { buildFirstNamespaceId } from '../../../src/core/identifiers.js';
import { Limit } from '../../../src/core/limit.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { fakeClock } from '../../../src/testing/fake-clock.js';
import { checkIntegrity, readAllRows, readRowsOf } from '../../support/file/file-rows.js';
import { ASK, ASK_SLOT, LIMITS } from '../../support/models/open-limiter.js';
import { visibleState } from '../../support/models/random-administration.js';

const folder = mkdtempSync(join(tmpdir(), 'headgate-file-'));
let files = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A path without a file, in a new folder. */
function newPath(): string {
  const own = join(folder, String(files++));
  mkdirSync(own);
  return join(own, 'limits.db');
}

function openFile(path: string, options = {}): Promise<RateLimiter> {
  return RateLimiter.open(file({ path }), { limits: LIMITS, ...options });
}

/**
 * Fills a file with data of every kind: balances, holders, config, entities, usage of two hours, audit, a second
 * namespace.
 */
async function fill(limiter: RateLimiter, advance: (ms: number) => Promise<void>): Promise<void> {
  await limiter.entities.create({ id: 'proj', name: 'Production', metadata: { tier: 'gold' } });
  await limiter.entities.create({ id: 'user-1', parentId: 'proj', cascade: true });
  await limiter.config.setSystem({ limits: LIMITS, onUnavailable: 'local' });
  await limiter.config.setEntity('user-1', 'gpt-4', { limits: [Limit.perHour('rpm', 100), ...LIMITS.slice(1)] });
  await (await limiter.acquire(ASK)).settle({ tpm: 5_000 });
  await advance(3_600_000);
  await limiter.acquire({ ...ASK_SLOT, leaseTtlMs: 600_000 });
  await limiter.namespaces.register('acme');
  const acme = await limiter.in('acme');
  await acme.acquire(ASK_SLOT);
  await acme.buckets.reset(ASK);
}

describe('a file store', () => {
  test('a file store has all its data after it was closed and opened again', async () => {
    const path = newPath();
    const clock = fakeClock();
    const options = { clock, caller: 'worker-1', principal: 'operator-1', onExpiry: 'refund' as const };
    const first = await openFile(path, options);
    await fill(first, (ms) => clock.advance(ms));
    const before = [await visibleState(first), await visibleState(await first.in('acme'))];
    await first.close({ leases: 'keep' });
    const second = await openFile(path, options);
    expect([await visibleState(second), await visibleState(await second.in('acme'))]).toEqual(before);
    expect(await second.available(ASK)).toEqual({ rpm: 59, tpm: 5_500, slots: 1 });
    await second.close();
  });

  test('a file store continues with its stored balance after each opening', async () => {
    const path = newPath();
    const clock = fakeClock();
    for (let left = 59; left >= 55; left--) {
      const limiter = await openFile(path, { clock });
      await limiter.acquire({ ...ASK, consume: { rpm: 1 } });
      expect(await limiter.available(ASK)).toMatchObject({ rpm: left });
      await limiter.close();
    }
  });

  test('a file store keeps numbers above 2^53 exactly', async () => {
    const path = newPath();
    const limits = [Limit.custom('tokens', { capacity: 1e12, refillAmount: 1, refillPeriodMs: 86_400_000 })];
    const clock = fakeClock();
    const limiter = await openFile(path, { clock, limits });
    const ask = { entityId: 'a', resource: 'r' };
    const lease = await limiter.acquire({ ...ask, consume: { tokens: 7 } });
    for (let n = 0; n < 50; n++) await lease.adjust({ tokens: n % 2 === 0 ? 1e12 : 999_999_999_999 });
    const total = 25n * 1_000_000_000_000n + 25n * 999_999_999_999n + 7n;
    const [row] = (await readAllRows(path))['buckets'] ?? [];
    expect(JSON.parse(String(row?.['state']))).toMatchObject({
      l: [[String(limits[0]), String(10n ** 15n - total * 1_000n), String(total * 1_000n), 0]],
    });
    await limiter.close();

    const again = await openFile(path, { clock, limits });
    expect((await again.buckets.get(ask))?.limits[0]).toMatchObject({
      consumed: Number(total),
      available: Number(10n ** 12n - total),
    });
    expect(await again.usage.summary({ ...ask, window: 'daily' })).toMatchObject({ total: { tokens: Number(total) } });
    await again.close();
  });

  test('a file store keeps any text like a memory store', async () => {
    const texts = ['', 'a\0b', '\u{d800} half', 'Zoë 😀', "'; DROP TABLE audit; --", '\u{ffff}', ' '];
    const seen = await Promise.all(
      [file({ path: newPath() }), memory()].map(async (backend) => {
        const answers: unknown[] = [];
        for (const [at, text] of texts.entries()) {
          const clock = fakeClock();
          const limiter = await RateLimiter.open(backend, { limits: LIMITS, clock, principal: text, caller: text });
          await limiter.entities.create({ id: `e${at}`, name: text, metadata: { [text]: text } });
          await limiter.acquire({ ...ASK_SLOT, entityId: `e${at}` });
          const { items } = await limiter.audit.list({ entityId: `e${at}` });
          const leases = (await limiter.leases.list({ ...ASK, entityId: `e${at}` })).items;
          answers.push([await limiter.entities.get(`e${at}`), items[0]?.principal, leases[0]?.caller]);
        }
        return answers;
      }),
    );
    expect(seen[0]).toEqual(seen[1]);
    expect(seen[0]).toMatchObject(texts.map((text) => [{ name: text, metadata: { [text]: text } }, text, text]));
  });

  test('a closed file store refuses every call', async () => {
    const path = newPath();
    const backend = file({ path });
    const limiter = await RateLimiter.open(backend, { limits: LIMITS });
    const lease = await limiter.acquire(ASK);
    await limiter.close();
    const closed = { code: 'backend.unavailable', kind: 'closed' };
    await expect(limiter.tryAcquire(ASK)).rejects.toMatchObject(closed);
    await expect(limiter.entities.list()).rejects.toMatchObject(closed);
    await expect(lease.settle({ tpm: 1 })).rejects.toMatchObject(closed);
    const call = { namespaceId: buildFirstNamespaceId('default'), nowMs: 0, timeoutMs: 1_000 };
    expect(() => backend.peek(call, [])).toThrow(expect.objectContaining(closed));
    expect(await limiter.ping()).toMatchObject({ ok: false, error: closed });
  });
});

describe('the address of a file', () => {
  test('the address of a file is relative to the working directory', async () => {
    const path = newPath();
    const limiter = await RateLimiter.open(`file:${relative(process.cwd(), path)}?synchronous=full`, {
      limits: LIMITS,
    });
    await limiter.acquire(ASK);
    await limiter.close();
    expect(existsSync(path)).toBe(true);
  });

  test('the address of a file keeps its meaning when the working directory changes', async () => {
    const path = newPath();
    const home = process.cwd();
    const limiter = await RateLimiter.open(`file:${relative(home, path)}`, { limits: LIMITS });
    try {
      process.chdir(join(path, '..'));
      await limiter.acquire(ASK);
    } finally {
      process.chdir(home);
    }
    await limiter.close();
    expect(existsSync(path)).toBe(true);
  });

  test.each([
    ['file:', 'store'],
    ['file:?synchronous=full', 'store'],
    ['file:./x.db?mode=ro', 'store'],
    ['file:./x.db?synchronous=full&cache=shared', 'store'],
    ['file:./x.db?synchronous=off', 'synchronous'],
    ['file:./x.db?synchronous', 'synchronous'],
  ])('the address %s is refused', async (address, field) => {
    await expect(RateLimiter.open(address)).rejects.toMatchObject({ code: 'input.invalid', field });
    expect(existsSync('x.db')).toBe(false);
  });

  test.each([
    ['normal', 1],
    ['full', 2],
  ] as const)('the option synchronous=%s reaches SQLite', async (synchronous, level) => {
    const real = await loadDriver();
    const opened: SqliteDatabase[] = [];
    const driver = {
      open: (path: string) => {
        const database = real.open(path);
        opened.push(database);
        return database;
      },
    };
    const namespace = { id: buildFirstNamespaceId('default'), name: 'default' };
    const storage = new FileStorage({ path: newPath(), synchronous, namespace, driver });
    const limiter = await RateLimiter.open(createEmbeddedBackend(storage), { limits: LIMITS });
    await limiter.acquire(ASK);
    expect(opened.at(-1)?.prepare('PRAGMA synchronous').get()).toEqual([level]);
    expect(opened.at(-1)?.prepare('PRAGMA journal_mode').get()).toEqual(['wal']);
    await limiter.close();
  });
});

describe('files that do not exist yet', () => {
  test('reading does not create a file', async () => {
    const path = newPath();
    const limiter = await openFile(path);
    await visibleState(limiter);
    expect(await limiter.timeUntilAvailable(ASK)).toBe(0);
    await expect(limiter.in('acme')).rejects.toMatchObject({ code: 'namespace.missing' });
    await expect(limiter.tryAcquire({ ...ASK, consume: { nothing: 1 } })).rejects.toMatchObject({
      code: 'input.invalid',
    });
    expect((await limiter.ping()).ok).toBe(true);
    await limiter.close();
    expect(readdirSync(join(path, '..'))).toEqual([]);
  });

  test('the first write creates the file', async () => {
    const path = newPath();
    const limiter = await openFile(path);
    await limiter.acquire(ASK);
    expect(existsSync(path)).toBe(true);
    expect((await readAllRows(path))['buckets']).toHaveLength(1);
    await limiter.close();
  });

  test('a limiter that was opened before the file existed uses the file', async () => {
    const path = newPath();
    const clock = fakeClock();
    const [reader, writer] = [await openFile(path, { clock }), await openFile(path, { clock })];
    expect(await reader.available(ASK)).toMatchObject({ rpm: 60 });
    await writer.acquire(ASK);
    expect(await reader.available(ASK)).toMatchObject({ rpm: 59 });
    await reader.close();
    await writer.close();
  });

  test('an empty file is used as a new store', async () => {
    const path = newPath();
    writeFileSync(path, '');
    const limiter = await openFile(path);
    await limiter.acquire(ASK);
    await limiter.close();
    expect(await checkIntegrity(path)).toBe('ok');
  });

  test('a path where no file can exist is refused', async () => {
    const path = newPath();
    mkdirSync(path);
    await expect(openFile(path)).rejects.toMatchObject({
      code: 'infrastructure.file',
      message: expect.stringContaining(path),
    });
    const nowhere = await openFile(join(path, 'none', 'limits.db'));
    await expect(nowhere.acquire(ASK)).rejects.toMatchObject({ code: 'infrastructure.file' });
    expect(readdirSync(path)).toEqual([]);
  });
});

describe('purges in a file', () => {
  test('purging a namespace does not change a row of the others', async () => {
    const path = newPath();
    const clock = fakeClock();
    const limiter = await openFile(path, { clock });
    await fill(limiter, (ms) => clock.advance(ms));
    await fill(await limiter.in('acme'), (ms) => clock.advance(ms));
    const acme = await limiter.namespaces.delete('acme');
    const kept = buildFirstNamespaceId('default');
    const before = await readRowsOf(path, kept);
    for (const table of ['audit', 'buckets', 'configs', 'entities', 'usage']) expect(before[table]).not.toEqual([]);
    const owned = Object.entries(await readRowsOf(path, acme.id)).filter(([table]) => table !== 'namespaces');
    const { removed } = await limiter.namespaces.purge('acme');
    expect(removed).toBe(owned.reduce((sum, [, rows]) => sum + rows.length, 0));
    expect(await readRowsOf(path, kept)).toEqual(before);
    const left = await readRowsOf(path, acme.id);
    expect(left).toMatchObject({ audit: [], buckets: [], configs: [], entities: [], usage: [] });
    expect(left['namespaces']).toMatchObject([{ name: 'acme', status: 'purging' }]);
    await limiter.close();
  });
});

describe('namespaces of a file', () => {
  test('a file without the requested namespace is refused, and nothing is written', async () => {
    const path = newPath();
    const limiter = await openFile(path);
    await limiter.acquire(ASK);
    await limiter.close();
    const [bytes, rows] = [readFileSync(path), await readAllRows(path)];
    const other = RateLimiter.open(file({ path, namespace: 'acme' }), { limits: LIMITS, namespace: 'acme' });
    await expect(other).rejects.toMatchObject({ code: 'namespace.missing', namespace: 'acme' });
    expect(await readAllRows(path)).toEqual(rows);
    expect(readFileSync(path).equals(bytes)).toBe(true);
  });
});
