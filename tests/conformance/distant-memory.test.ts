import { describe, test } from 'vitest';
import { memory } from '../../src/index.js';
import { describeBackend } from '../../src/testing/backend.js';

/** One store for all cases, with delayed answers as over a network. */
const shared = distant(memory());

describeBackend('memory at a distance', { describe: describe.concurrent, test, create: () => shared });

/** Every method of the port, and of its small stores, answers later than a fake clock waits for. */
function distant<T extends object>(target: T): T {
  const entries = Object.entries(target).map(([key, value]: [string, unknown]) => {
    if (typeof value !== 'function') return [key, typeof value === 'object' && value !== null ? distant(value) : value];
    const late = async (...args: unknown[]): Promise<unknown> => {
      await turns(4);
      const answer: unknown = await Reflect.apply(value, target, args);
      await turns(4);
      return answer;
    };
    return [key, late];
  });
  return Object.fromEntries(entries) as T;
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}
