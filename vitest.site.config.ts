import { defineConfig } from 'vitest/config';
import { shared } from './vitest.config.js';

/** The built site in a browser. `npm run docs` builds it and then runs this. */
export default defineConfig({
  test: { ...shared, name: 'site', include: ['tests/site/**/*.test.ts'], testTimeout: 600_000 },
});
