import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Random } from '../../src/testing/conformance/kit/random.js';
import { type FeatureStore, STORES } from '../support/features/portable-stores.js';
import { CutHistory, type Seen } from './cut-history.js';

const STEPS = 50;
const HISTORIES: Readonly<Record<string, number>> = { memory: 40, file: 6, dynamodb: 4 };

describe.each(STORES)('asks that may be cut on %s, compared with a plain account', (name, start) => {
  let store: FeatureStore;
  beforeAll(async () => {
    store = await start();
  });
  afterAll(async () => store?.[Symbol.asyncDispose]());

  test.each([
    ['one process takes exactly what', 1],
    ['three processes take never more than what', 3],
  ])(
    '%s the account has, with priorities, pauses and shadows',
    async (_, processes) => {
      // Only the images of a process that shares a table with others can be old.
      const mayTakeLess = name === 'dynamodb' && processes > 1;
      const seen: Seen[] = [];
      for (let seed = 1; seed <= (HISTORIES[name] ?? 0); seed++) {
        seen.push(
          await CutHistory.play(await store.space(), new Random(seed), { processes, steps: STEPS, mayTakeLess }),
        );
      }
      const sum = (count: keyof Seen): number => seen.reduce((all, one) => all + one[count], 0);
      for (const count of ['cut', 'denied', 'paused', 'exceeded'] as const)
        expect(sum(count), count).toBeGreaterThan(5);
    },
    60_000,
  );
});
