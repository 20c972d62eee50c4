import { defineConfig } from 'vitest/config';
import { CHAOS, MANY_CASES, shared } from './vitest.config.js';

/** What fills the processors with processes of its own, one file after the other; and properties with all their cases. */
export default defineConfig({
  test: {
    ...shared,
    include: [...CHAOS, ...MANY_CASES],
    testTimeout: 600_000,
    env: { ...shared.env, HEADGATE_RUNS: '1' },
    fileParallelism: false,
    maxWorkers: 1,
  },
});
