import { expect, test } from 'vitest';
import { stopTimers, until } from '../../../../tests/support/models/hand-time.js';
import { deadlineIn } from '../../../machine-time.js';
import { KeyedMutex } from './keyed-mutex.js';

const LONG_MS = 60_000;

/** Work that ends when the test says so. */
function work(log: string[], name: string) {
  let finish = (_error?: Error): void => {};
  const ended = new Promise<string>((resolve, reject) => {
    finish = (error) => (error === undefined ? resolve(name) : reject(error));
  });
  const start = async (): Promise<string> => {
    log.push(name);
    return ended;
  };
  return { start, finish: (error?: Error) => finish(error) };
}

test('work of one key starts when the previous work has ended, with or without success, and other keys do not wait', async () => {
  const log: string[] = [];
  const mutex = new KeyedMutex();
  const [a, b, c, other] = ['a', 'b', 'c', 'other'].map((name) => work(log, name));
  const done = [a, b, c].map(async (item) => mutex.run('key', deadlineIn(LONG_MS), item!.start));
  const otherKey = mutex.run('other', deadlineIn(LONG_MS), other!.start);
  expect(log).toEqual(['a', 'other']);
  a!.finish(new Error('failed'));
  await expect(done[0]).rejects.toThrow('failed');
  await until(() => log.length > 2);
  expect(log).toEqual(['a', 'other', 'b']);
  b!.finish();
  c!.finish();
  other!.finish();
  expect(await Promise.all([done[1], done[2], otherKey])).toEqual(['b', 'c', 'other']);
});

test('a waiter gives up as contended shortly before its deadline, and its work is not started', async () => {
  using time = stopTimers();
  const log: string[] = [];
  const mutex = new KeyedMutex();
  const [first, late] = ['first', 'late'].map((name) => work(log, name));
  const done = mutex.run('key', deadlineIn(LONG_MS), first!.start);
  const given = mutex.run('key', deadlineIn(30), late!.start);
  time.pass(30);
  await expect(given).rejects.toMatchObject({ code: 'backend.unavailable', kind: 'contended' });
  first!.finish();
  await done;
  expect(log).toEqual(['first']);
});
