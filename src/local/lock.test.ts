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

test('of several at once, one works at a time, and none is left out', async () => {
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

test('work that fails leaves no lock behind', async () => {
  await expect(underLock(folder, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(readdirSync(folder)).toEqual([]);
});

test('what a dead process left, and what belongs to a program that got its number, is no lock', async () => {
  writeFileSync(join(folder, '999999999.dead.lock'), 'headgate local up');
  writeFileSync(join(folder, `${process.ppid}.reused.lock`), 'headgate local up');
  expect(await underLock(folder, () => Promise.resolve(readdirSync(folder).length))).toBe(1);
});
