import { EventEmitter, once } from 'node:events';
import { expect, test } from 'vitest';
import { stopOnSignal } from './interruption.js';

test.each(['SIGINT', 'SIGTERM'])('%s aborts the work, and its result is returned', async (signal) => {
  const source = new EventEmitter();
  const running = stopOnSignal(
    async (stop) => {
      await once(stop.signal, 'abort');
      return stop.signal.reason as unknown;
    },
    () => 'interrupted',
    source,
  );
  source.emit(signal);
  expect(await running).toBe('interrupted');
});

test('signals have their usual effect again after the work, also after work that failed', async () => {
  const source = new EventEmitter();
  await stopOnSignal(async () => {}, undefined, source);
  await expect(stopOnSignal(async () => Promise.reject(new Error('x')), undefined, source)).rejects.toThrow('x');
  expect(source.eventNames()).toEqual([]);
});

test('a second signal of the other kind finds no listener, so that it ends the process', async () => {
  const source = new EventEmitter();
  await stopOnSignal(
    async () => {
      source.emit('SIGINT');
      expect(source.eventNames()).toEqual([]);
    },
    undefined,
    source,
  );
});
