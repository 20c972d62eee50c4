import { expect, test, vi } from 'vitest';
import { BackendUnavailable } from '../../core/errors.js';
import { fakeClock } from '../../testing/fake-clock.js';
import { Guard } from './guard.js';

const DAY_MS = 86_400_000;

test('a call without a deadline is awaited, and concurrent calls keep their deadlines', async () => {
  const clock = fakeClock();
  const guard = new Guard(clock);
  let finish = (_answer: number): void => {};
  const purge = guard.call(
    { where: 'purging', timeoutMs: null },
    () => new Promise<number>((resolve) => (finish = resolve)),
  );
  const read = guard.call({ where: 'reading', timeoutMs: 1_000 }, () => new Promise<number>(() => {}));
  const late = expect(read).rejects.toMatchObject({ kind: 'timeout' });
  await clock.advance(DAY_MS);
  await late;
  finish(7);
  expect(await purge).toBe(7);
});

test('a call without a deadline counts for the breaker like any other', async () => {
  const guard = new Guard(fakeClock());
  const fail = async (): Promise<never> => Promise.reject(new BackendUnavailable('out', 'connection'));
  for (let count = 0; count < 5; count++) {
    await expect(guard.call({ where: 'purging', timeoutMs: null }, fail)).rejects.toMatchObject({ kind: 'connection' });
  }
  expect(() => guard.call({ where: 'purging', timeoutMs: null }, fail)).toThrow('failed 5 times in a row');
});

test('a failure that several calls share counts once for the breaker, and separate failures count each', async () => {
  const guard = new Guard(fakeClock());
  const call = async (failure: Error): Promise<void> => {
    const failing = async (): Promise<never> => {
      throw failure;
    };
    await expect(guard.call({ where: 'acquire', timeoutMs: 1_000 }, failing)).rejects.toBe(failure);
  };
  const shared = new BackendUnavailable('no answer', 'timeout');
  await Promise.all(Array.from({ length: 9 }, () => call(shared)));
  expect(() => guard.enter('acquire')).not.toThrow();
  for (let count = 0; count < 4; count++) await call(new BackendUnavailable('no answer', 'timeout'));
  expect(() => guard.enter('acquire')).toThrow('failed 5 times in a row');
});

test('a failure of a store that uses another copy of the package counts for the breaker', async () => {
  vi.resetModules();
  const other = await import('../../core/errors.js');
  expect(other.BackendUnavailable).not.toBe(BackendUnavailable);
  const guard = new Guard(fakeClock());
  const fail = async (): Promise<never> => Promise.reject(new other.BackendUnavailable('out', 'connection'));
  for (let count = 0; count < 5; count++) {
    await expect(guard.call({ where: 'acquire', timeoutMs: null }, fail)).rejects.toMatchObject({ kind: 'connection' });
  }
  expect(() => guard.call({ where: 'acquire', timeoutMs: null }, fail)).toThrow('failed 5 times in a row');
});
