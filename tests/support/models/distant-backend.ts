import type { Backend } from '../../../src/backend.js';
import type { FakeClock } from '../../../src/testing/fake-clock.js';

/** A store whose calls take time on a fake clock, with what was asked of it. */
export interface DistantBackend {
  readonly backend: Backend;
  /** The names of the calls, in their order. */
  readonly calls: string[];
}

/**
 * Puts a network in front of the calls that an acquire makes: half of `roundTripMs` on the way there, half on the way
 * back. `connections` calls are under way at a time, further ones queue.
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
