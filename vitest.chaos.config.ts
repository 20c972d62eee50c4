import { defineConfig } from 'vitest/config';
import { CHAOS, MANY_CASES, ON_SDK, SDK_CLIENT, shared } from './vitest.config.js';

const slow = { ...shared, testTimeout: 600_000, env: { ...shared.env, HEADGATE_RUNS: '1' } } as const;

/**
 * What fills the processors with processes of its own, one file after the other; properties with all their cases; and
 * the suites of DynamoDB on the SDK's client.
 */
export default defineConfig({
  test: {
    fileParallelism: false,
    maxWorkers: 1,
    projects: [
      { test: { ...slow, name: 'chaos', include: [...CHAOS, ...MANY_CASES] } },
      {
        resolve: SDK_CLIENT.resolve,
        test: { ...slow, env: { ...shared.env, ...SDK_CLIENT.env }, name: 'sdk', include: ON_SDK },
      },
    ],
  },
});
