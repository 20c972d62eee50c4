import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { underLock } from './lock.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-lock-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('concurrent callers of underLock run one at a time, and all of them run', async () => {
  let inside = 0;
  let most = 0;
  const work = async (name: number): Promise<number> => {
    inside += 1;
    most = Math.max(most, inside);
    await new Promise((resolve) => setImmediate(resolve));
    inside -= 1;
    return name;
  };
  const done = await Promise.all([1, 2, 3, 4].map((name) => underLock(folder, () => work(name))));
  expect(done).toEqual([1, 2, 3, 4]);
  expect(most).toBe(1);
  expect(readdirSync(folder)).toEqual([]);
});

test('underLock removes its lock file when the work fails', async () => {
  await expect(underLock(folder, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(readdirSync(folder)).toEqual([]);
});

test('a folder that cannot be written is named, and is no unexpected error', async () => {
  const path = join(folder, 'file');
  writeFileSync(path, '');
  await expect(underLock(path, () => Promise.resolve())).rejects.toMatchObject({
    code: 'infrastructure.file',
    message: expect.stringMatching(/^Cannot write .*file.*: ENOTDIR/),
  });
});

test('underLock ignores the lock file of a process that has ended, or whose id another program has now', async () => {
  writeFileSync(join(folder, '999999999.dead.lock'), 'headgate local up');
  writeFileSync(join(folder, `${process.ppid}.reused.lock`), 'headgate local up');
  expect(await underLock(folder, () => Promise.resolve(readdirSync(folder).length))).toBe(1);
});
