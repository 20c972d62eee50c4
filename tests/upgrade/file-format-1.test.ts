import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { file } from '../../src/backends/embedded/file/file.js';
import { buildFirstNamespaceId } from '../../src/core/identifiers.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { writeFormat1 } from './file-format-1.js';
import { checkIntegrity, readAllRows } from '../support/file/file-rows.js';

const NS = buildFirstNamespaceId('default');
const CALL = { namespaceId: NS, nowMs: 1_800_000_000_000, timeoutMs: 1_000 };
const MARK = { key: 'system', value: { limits: ['rpm:60/min'] } };
const PAGE = { limit: 100, after: null };

const folder = mkdtempSync(join(tmpdir(), 'headgate-format-'));
let files = 0;
let path: string;

beforeEach(async () => {
  path = join(folder, `${files++}.db`);
  await writeFormat1(path, NS);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('a file of format 1 is read without a change, and has no marks', async () => {
  const before = readFileSync(path);
  const backend = file({ path });
  const limiter = await RateLimiter.open(backend);
  expect(await limiter.entities.get('user-1')).toMatchObject({ name: 'Ann', metadata: { tier: 'gold' } });
  expect(await limiter.config.get('system')).toMatchObject({ onUnavailable: 'local' });
  expect(await backend.managed.list(CALL, PAGE)).toEqual({ items: [], next: null });
  await limiter.close();
  expect(readFileSync(path).equals(before)).toBe(true);
});

test.each<[string, boolean]>([
  ['by the first write of a process that has read it', true],
  ['by a process that starts with a write', false],
])('a file of format 1 is brought to the current format and keeps every row, %s', async (_, readsFirst) => {
  const before = await readAllRows(path);
  const backend = file({ path });
  const limiter = readsFirst ? await RateLimiter.open(backend) : new RateLimiter(backend);
  if (readsFirst) await limiter.entities.get('user-1');
  else await backend.open(1_000);
  await backend.managed.mark(CALL, MARK);
  expect(await backend.managed.list(CALL, PAGE)).toEqual({ items: [MARK], next: null });
  await limiter.close();
  const { managed, clock, receipts, pauses, ...rest } = await readAllRows(path);
  expect(rest).toEqual(before);
  expect([receipts, pauses]).toEqual([[], []]);
  expect([managed, clock]).toMatchObject([{ length: 1 }, { length: 1 }]);
  expect(await checkIntegrity(path)).toBe('ok');
});

test('a process with an open file of format 1 continues while another process changes the format', async () => {
  const [older, newer] = [file({ path }), file({ path })];
  const [first, second] = [await RateLimiter.open(older), await RateLimiter.open(newer)];
  expect(await older.managed.list(CALL, PAGE)).toEqual({ items: [], next: null });
  await newer.managed.mark(CALL, MARK);
  expect(await older.managed.list(CALL, PAGE)).toEqual({ items: [MARK], next: null });
  await first.config.setSystem({ limits: [Limit.perMinute('rpm', 7)] });
  expect((await second.config.get('system'))?.limits.map(String)).toEqual(['rpm:7/min']);
  await first.close();
  await second.close();
});

test('a namespace of a file of format 1 is deleted and purged', async () => {
  const limiter = await RateLimiter.open(file({ path }));
  const { id } = await limiter.namespaces.delete('default');
  expect(await limiter.namespaces.purge(id)).toEqual({ removed: 2 });
  await limiter.close();
});
