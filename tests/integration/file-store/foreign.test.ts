import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { createEmbeddedBackend } from '../../../src/backends/embedded/embedded-backend.js';
import { loadDriver } from '../../../src/backends/embedded/file/database/driver.js';
import { FileStorage } from '../../../src/backends/embedded/file/file-storage.js';
import { file } from '../../../src/backends/embedded/file/file.js';
import { buildFirstNamespaceId } from '../../../src/core/identifiers.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { checkIntegrity, readAllRows } from '../../support/file/file-rows.js';
import { ASK, LIMITS } from '../../support/models/open-limiter.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'headgate-foreign-'));
const path = join(folder, 'limits.db');

afterEach(() => {
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function runSql(sql: string): Promise<void> {
  const database = (await loadDriver()).open(path);
  database.exec(sql);
  database.close();
}

async function makeOurs(): Promise<void> {
  const limiter = await RateLimiter.open(file({ path }), { limits: LIMITS });
  await limiter.acquire(ASK);
  await limiter.close();
}

/** The errors of opening the file, and of a limiter that was opened before `make` wrote the file. */
async function refusals(make: () => Promise<void>): Promise<unknown[]> {
  const early = await RateLimiter.open(file({ path }), { limits: LIMITS });
  await make();
  const seen = await Promise.all([
    RateLimiter.open(file({ path }), { limits: LIMITS }).catch((error: unknown) => error),
    early.available(ASK).catch((error: unknown) => error),
    early.acquire(ASK).catch((error: unknown) => error),
    early.entities.create({ id: 'a' }).catch((error: unknown) => error),
  ]);
  await early.close();
  return seen;
}

describe('files of other programs', () => {
  test.each<[string, () => Promise<void>]>([
    ['a few letters', async () => writeFileSync(path, 'hello')],
    ['a long text', async () => writeFileSync(path, 'limits '.repeat(20_000))],
    ['a file that only begins like SQLite', async () => writeFileSync(path, `SQLite format 3\0${'x'.repeat(9_000)}`)],
    ['a database of another program', () => runSql('CREATE TABLE t (a); INSERT INTO t VALUES (1)')],
    ['a database of another program in WAL mode', () => runSql('PRAGMA journal_mode = WAL; CREATE TABLE t (a)')],
    ['a database with the id of another program', () => runSql('PRAGMA application_id = 7; CREATE TABLE t (a)')],
    ['an empty database with the id of another program', () => runSql('PRAGMA application_id = 7; VACUUM')],
  ])('%s is refused and not changed', async (_, make) => {
    let before: Buffer | undefined;
    const seen = await refusals(async () => {
      await make();
      before = readFileSync(path);
    });
    const refused = { code: 'input.invalid', field: 'store', message: expect.stringContaining('Headgate file') };
    expect(seen).toEqual(seen.map(() => expect.objectContaining(refused)));
    expect(readFileSync(path).equals(before!)).toBe(true);
  });

  test('a file that a newer Headgate wrote is refused and not changed', async () => {
    await makeOurs();
    await runSql('PRAGMA user_version = 99');
    await runSql('PRAGMA wal_checkpoint(TRUNCATE)');
    const [bytes, rows] = [readFileSync(path), await readAllRows(path)];
    const opening = RateLimiter.open(file({ path }), { limits: LIMITS });
    await expect(opening).rejects.toMatchObject({
      code: 'schema.mismatch',
      command: 'npm install headgate@latest',
      message: expect.stringMatching(/newer Headgate \(format 99, this one knows \d+\)/),
    });
    expect(readFileSync(path).equals(bytes)).toBe(true);
    expect(await readAllRows(path)).toEqual(rows);
  });
});

describe('files that fail', () => {
  test('a full disk is an outage, and the file keeps its data', async () => {
    await makeOurs();
    const real = await loadDriver();
    const full = {
      open: (opened: string) => {
        const database = real.open(opened);
        database.exec('PRAGMA max_page_count = 1');
        return database;
      },
    };
    const namespace = { id: buildFirstNamespaceId('default'), name: 'default' };
    const storage = new FileStorage({ path, synchronous: 'normal', namespace, driver: full });
    const limiter = await RateLimiter.open(createEmbeddedBackend(storage), { limits: LIMITS });
    const rows = await readAllRows(path);
    const big = { metadata: { text: 'x'.repeat(100_000) } };
    const out = { code: 'backend.unavailable', kind: 'server', message: expect.stringContaining(path) };
    await expect(limiter.entities.create({ id: 'a', ...big })).rejects.toMatchObject(out);
    expect(await readAllRows(path)).toEqual(rows);
    // A write that needs no further page succeeds.
    expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true });
    await limiter.close();
    expect(await checkIntegrity(path)).toBe('ok');
  });

  test('a damaged file is reported with its path', async () => {
    await makeOurs();
    await runSql('PRAGMA wal_checkpoint(TRUNCATE)');
    const bytes = readFileSync(path);
    bytes.fill(0xff, 4_096);
    for (const name of readdirSync(folder)) rmSync(join(folder, name));
    writeFileSync(path, bytes);
    const opening = (async () => (await RateLimiter.open(file({ path }), { limits: LIMITS })).acquire(ASK))();
    await expect(opening).rejects.toMatchObject({
      code: 'infrastructure.file',
      message: expect.stringContaining(path),
    });
  });
});

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const hasOwnSqlite = major > 22 || (major === 22 && minor >= 13);

test.skipIf(hasOwnSqlite)(
  'the error names the command to install libsql if Node has no SQLite (skipped where Node has it)',
  async () => {
    const script = `
      import { RateLimiter } from './src/index.ts';
      const error = await RateLimiter.open('file:./limits.db').catch((thrown) => thrown);
      console.log(JSON.stringify(error));`;
    await build({
      stdin: { contents: script, resolveDir: ROOT, loader: 'ts' },
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      external: ['libsql'],
      outfile: join(folder, 'script.mjs'),
    });
    const printed = execFileSync(process.execPath, ['script.mjs'], { cwd: folder, encoding: 'utf8', timeout: 20_000 });
    const error = JSON.parse(printed) as Record<string, unknown>;
    expect(error).toMatchObject({ code: 'infrastructure.missing-peer' });
    expect(error['message']).toMatch(/Run: npm install libsql@\d/);
    expect(readdirSync(folder)).toEqual(['script.mjs']);
  },
);
