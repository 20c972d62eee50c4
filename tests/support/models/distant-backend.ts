import type { Backend } from '../../../src/backend.js';
import type { FakeClock } from '../../../src/testing/fake-clock.js';

/** A store whose calls take time on a fake clock, with the names of its calls. */
export interface DistantBackend {
  readonly backend: Backend;
  /** The names of the calls, in their order. */
  readonly calls: string[];
}

/**
 * Delays the calls of an acquire like a network: half of `roundTripMs` before the call, half after it. At most
 * `connections` calls run at a time; further ones queue.
 */
export function distantBackend(
  inner: Backend,
  clock: FakeClock,
  roundTripMs: number,
  connections = Number.POSITIVE_INFINITY,
): DistantBackend {
  const calls: string[] = [];
  const queue: (() => void)[] = [];
  let underWay = 0;

  const far = async <T>(name: string, work: () => T | Promise<T>): Promise<T> => {
    calls.push(name);
    if (underWay === connections) await new Promise<void>((resolve) => queue.push(resolve));
    else underWay += 1;
    try {
      await clock.sleep(roundTripMs / 2);
      const answer = await work();
      await clock.sleep(roundTripMs / 2);
      return answer;
    } finally {
      const next = queue.shift();
      if (next === undefined) underWay -= 1;
      else next();
    }
  };

  return {
    calls,
    backend: {
      ...inner,
      consume: (call, request) => far('consume', () => inner.consume(call, request)),
      adjust: (call, request) => far('adjust', () => inner.adjust(call, request)),
      peek: (call, levels) => far('peek', () => inner.peek(call, levels)),
    },
  };
}
