import { expect, test, vi } from 'vitest';
import { BackendUnavailable, LeaseClosed } from '../../core/errors.js';
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

test('the reason of a caller that stops waiting counts neither as a failure nor as an answer of the store', async () => {
  const guard = new Guard(fakeClock());
  const fail = async (): Promise<never> => Promise.reject(new BackendUnavailable('out', 'connection'));
  const failing = { where: 'acquire', timeoutMs: 1_000 };
  for (let count = 0; count < 4; count++) await expect(guard.call(failing, fail)).rejects.toThrow('out');
  for (const reason of [new LeaseClosed('lease', 'expired', 'settle'), new BackendUnavailable('other', 'timeout')]) {
    const left = new AbortController();
    const call = guard.call({ ...failing, signal: left.signal }, () => new Promise(() => {}));
    left.abort(reason);
    await expect(call).rejects.toBe(reason);
  }
  expect(() => guard.enter('acquire')).not.toThrow();
  await expect(guard.call(failing, fail)).rejects.toThrow('out');
  expect(() => guard.enter('acquire')).toThrow('failed 5 times in a row');
});

test('the breaker lets a probe through when the clock was set back', async () => {
  const clock = fakeClock();
  const guard = new Guard(clock);
  const fail = async (): Promise<never> => Promise.reject(new BackendUnavailable('out', 'connection'));
  for (let count = 0; count < 5; count++) {
    await expect(guard.call({ where: 'acquire', timeoutMs: 1_000 }, fail)).rejects.toThrow('out');
  }
  clock.set(clock.now() - DAY_MS);
  guard.enter('acquire');
  expect(() => guard.enter('acquire')).toThrow('failed 5 times in a row');
});

function deferred() {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

/** A guard whose breaker has just opened, and its clock. */
async function opened() {
  const clock = fakeClock();
  const guard = new Guard(clock);
  const fail = async (): Promise<never> => Promise.reject(new BackendUnavailable('out', 'connection'));
  for (let count = 0; count < 5; count++) {
    await expect(guard.call({ where: 'acquire', timeoutMs: 1_000 }, fail)).rejects.toThrow('out');
  }
  return { clock, guard };
}

test('a call that did not ask the store leaves the probe to the next call', async () => {
  const { clock, guard } = await opened();
  await clock.advance(1_000);
  const unasked = { where: 'acquire', timeoutMs: 1_000, failureIn: () => null };
  await guard.call(unasked, async () => Promise.resolve('remembered'));
  expect(guard.call(unasked, () => 'remembered')).toBe('remembered');
  expect(guard.isClear).toBe(false);
  guard.enter('acquire');
  expect(() => guard.enter('acquire')).toThrow('failed 5 times in a row');
});

test('the breaker closes with the answer to a probe whose caller has left, unless it came too late', async () => {
  const { clock, guard } = await opened();
  const probe = async (signal?: AbortSignal) => {
    await clock.advance(1_000);
    const { promise, resolve } = deferred();
    const call = guard.call({ where: 'acquire', timeoutMs: 500, signal }, () => promise);
    return { answer: resolve, call: Promise.resolve(call).catch((error: unknown) => error) };
  };
  const late = await probe();
  await clock.advance(500);
  late.answer();
  expect(await late.call).toMatchObject({ kind: 'timeout' });
  expect(guard.isClear).toBe(false);
  const left = new AbortController();
  const abandoned = await probe(left.signal);
  left.abort('gone');
  expect(await abandoned.call).toBe('gone');
  abandoned.answer();
  await guard.idle();
  expect(guard.isClear).toBe(true);
});
