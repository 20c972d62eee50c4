import { defineConfig } from 'vitest/config';
import { SDK_CLIENT, shared } from './vitest.config.js';

const slow = { ...shared, testTimeout: 120_000, hookTimeout: 60_000 } as const;

/**
 * Other engines than the default one are slower, and share the processors with their own processes. ExtendDB verifies
 * signatures: both clients run on it.
 */
export default defineConfig({
  test: {
    projects: [
      { test: { ...slow, name: 'engines', include: ['tests/engines/**/*.test.ts'] } },
      {
        resolve: SDK_CLIENT.resolve,
        test: {
          ...slow,
          env: { ...shared.env, ...SDK_CLIENT.env },
          name: 'sdk',
          include: ['tests/engines/extenddb.test.ts'],
        },
      },
    ],
  },
});
