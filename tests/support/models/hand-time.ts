import { vi } from 'vitest';

/** Time that a test moves. Disposing it restores the real time. */
export interface HandTime extends Disposable {
  pass(ms: number): void;
}

/** Only `pass` spends deadlines. The real duration of requests and pauses does not count. */
export function stopDeadlines(): HandTime {
  let nowMs = performance.now();
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  return {
    pass: (ms) => void (nowMs += ms),
    [Symbol.dispose]: () => spy.mockRestore(),
  };
}

/** Only `pass` fires timers and spends deadlines. Requests are not affected. */
export function stopTimers(): HandTime {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  return {
    pass: (ms) => void vi.advanceTimersByTime(ms),
    [Symbol.dispose]: () => void vi.useRealTimers(),
  };
}

/** Resolves when the condition holds. Only the timeout of the test bounds the wait. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setImmediate(resolve));
}
