import { describe, test } from 'vitest';
import { type Backend, memory } from '../../src/index.js';
import { describeBackend } from '../../src/testing/backend.js';

/** One store for all cases, whose answers take real time: what the suite will meet behind a network. */
const shared = distant(memory());

describeBackend('memory at a distance', { describe: describe.concurrent, test, create: () => shared });

/** Every method of the port, and of its small stores, answers a few turns of the event loop late. */
function distant<T extends object>(target: T): T {
  const entries = Object.entries(target).map(([key, value]: [string, unknown]) => {
    if (typeof value !== 'function') return [key, typeof value === 'object' && value !== null ? distant(value) : value];
    const late = async (...args: unknown[]): Promise<unknown> => {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 3));
      const answer: unknown = await Reflect.apply(value, target, args);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 3));
      return answer;
    };
    return [key, late];
  });
  return Object.fromEntries(entries) as T;
}

export type { Backend };
