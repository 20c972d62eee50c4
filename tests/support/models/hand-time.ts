import { vi } from 'vitest';

/** Time that a test moves. Disposing of it gives the real one back. */
export interface HandTime extends Disposable {
  pass(ms: number): void;
}

/** Deadlines are spent by `pass` alone: how long the machine takes for a request or a pause does not count. */
export function stopDeadlines(): HandTime {
  let nowMs = performance.now();
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  return {
    pass: (ms) => void (nowMs += ms),
    [Symbol.dispose]: () => spy.mockRestore(),
  };
}

/** Timers, too, go off by `pass` alone; requests go on as ever. */
export function stopTimers(): HandTime {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  return {
    pass: (ms) => void vi.advanceTimersByTime(ms),
    [Symbol.dispose]: () => void vi.useRealTimers(),
  };
}

/** Resolves when it is so, however long that takes: the time-out of the test bounds it. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setImmediate(resolve));
}
