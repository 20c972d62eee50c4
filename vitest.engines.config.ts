import { defineConfig } from 'vitest/config';
import { shared } from './vitest.config.js';

/**
 * Other engines than the default one are slower, and share the processors with their own processes. Tests of the stream
 * that are short elsewhere are run here in full.
 */
export default defineConfig({
  test: {
    ...shared,
    env: { ...shared.env, HEADGATE_FULL: '1' },
    include: [
      'tests/engines/**/*.test.ts',
      'tests/integration/stream-exactly-once.test.ts',
      'tests/chaos/stream-worker-killed.test.ts',
    ],
    testTimeout: 120_000,
    hookTimeout: 60_000,
  },
});
