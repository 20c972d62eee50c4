import { defineConfig } from 'vitest/config';
import { shared } from './vitest.config.js';

/** Other engines than the default one are slower, and share the processors with their own processes. */
export default defineConfig({
  test: { ...shared, include: ['tests/engines/**/*.test.ts'], testTimeout: 120_000, hookTimeout: 60_000 },
});
