import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { AccessTokens } from './access-token.js';
import { addToken, readTokenFile, removeToken } from './token-file.js';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-tokens-'));
  path = join(folder, 'tokens.json');
});

afterEach(() => rmSync(folder, { recursive: true }));

test('a created token is found by the secret that was returned, and the file does not contain it', async () => {
  const secret = await addToken(path, { name: 'web', role: 'app', namespace: 'default', entityPrefix: 'acme/' });
  expect(readFileSync(path, 'utf8')).not.toContain(secret);
  expect(new AccessTokens(await readTokenFile(path)).find(secret)).toMatchObject({
    name: 'web',
    entityPrefix: 'acme/',
  });
  expect(statSync(path).mode & 0o077).toBe(0);
});

test('a second token keeps the first, and a removed one is gone', async () => {
  const first = await addToken(path, { name: 'web', role: 'app', namespace: 'default' });
  const second = await addToken(path, { name: 'ops', role: 'admin', namespace: '*' });
  await removeToken(path, 'web');
  const tokens = new AccessTokens(await readTokenFile(path));
  expect(tokens.find(first)).toBeNull();
  expect(tokens.find(second)?.name).toBe('ops');
});

test.skipIf(process.platform === 'win32')('a change keeps who may read the file, and that it is a link', async () => {
  const target = join(folder, 'mounted.json');
  symlinkSync(target, path);
  await addToken(target, { name: 'web', role: 'app', namespace: 'default' });
  chmodSync(target, 0o640);
  // Only root may give a file to another user.
  if (process.getuid?.() === 0) chownSync(target, 1234, 5678);
  const { uid, gid, mode } = statSync(target);
  await addToken(path, { name: 'ops', role: 'admin', namespace: '*' });
  await removeToken(path, 'web');
  expect(lstatSync(path).isSymbolicLink()).toBe(true);
  expect(statSync(path)).toMatchObject({ uid, gid, mode });
  expect((await readTokenFile(target)).map(({ name }) => name)).toEqual(['ops']);
});

test('a name that exists, a name that does not, and a bad namespace are refused without a change', async () => {
  await addToken(path, { name: 'web', role: 'app', namespace: 'default' });
  const before = readFileSync(path, 'utf8');
  await expect(addToken(path, { name: 'web', role: 'app', namespace: 'default' })).rejects.toThrow('name');
  await expect(addToken(path, { name: 'bad', role: 'app', namespace: 'a b' })).rejects.toThrow('namespace');
  await expect(removeToken(path, 'none')).rejects.toThrow('name');
  expect(readFileSync(path, 'utf8')).toBe(before);
  expect(existsSync(`${path}.new`)).toBe(false);
});

test('twenty tokens that are created at the same time are all in the file', async () => {
  const names = Array.from({ length: 20 }, (_, at) => `web-${at}`);
  const secrets = await Promise.all(names.map((name) => addToken(path, { name, role: 'app', namespace: 'default' })));
  const tokens = new AccessTokens(await readTokenFile(path));
  expect(secrets.map((secret) => tokens.find(secret)?.name)).toEqual(names);
});

test('a change that finds the lock of a killed process names the lock, and changes nothing', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  try {
    writeFileSync(`${path}.new`, '');
    const failed = expect(addToken(path, { name: 'web', role: 'app', namespace: 'default' })).rejects.toThrow(
      `${path}.new exists`,
    );
    const end = { isReached: false };
    const over = failed.finally(() => (end.isReached = true));
    while (!end.isReached) {
      await vi.advanceTimersByTimeAsync(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await over;
    expect(existsSync(path)).toBe(false);
    expect(existsSync(`${path}.new`)).toBe(true);
  } finally {
    vi.useRealTimers();
  }
});

test('a file that does not exist is named', async () => {
  await expect(readTokenFile(path)).rejects.toThrow(path);
});
