import { defineConfig } from 'vitest/config';

/** Tests that measure time or memory, or fill the processors with processes of their own: each runs alone, at the end. */
const ALONE = [
  'tests/chaos/**/*.test.ts',
  'tests/packaging.test.ts',
  'tests/integration/manifest-large.test.ts',
  'tests/integration/memory-stays-flat.test.ts',
];

/** The conformance suite on engines that take minutes: `npm run test:engines`. */
const ENGINES = ['tests/engines/**/*.test.ts'];

export const shared = {
  environment: 'node',
  testTimeout: 30_000,
  env: { NODE_ENV: 'test', AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true' },
} as const;

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...shared,
          name: 'together',
          include: ['src/**/*.test.ts', 'tests/**/*.test.ts'],
          exclude: [...ALONE, ...ENGINES],
          // Engines and the command line are processes of their own: two workers keep two processors busy.
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...shared,
          name: 'alone',
          include: ALONE,
          fileParallelism: false,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
