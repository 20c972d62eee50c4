import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** What takes processes, faults, minutes, the memory of the machine, a browser, or programs in Python: `npm run test:chaos`. */
export const CHAOS = [
  'examples/guide/journal-store-replay.test.ts',
  'examples/guide/journal-store-suite.test.ts',
  'src/backends/dynamodb/bucket/writes/engines.test.ts',
  'src/limiter/waiting/waiting-distance.test.ts',
  'tests/chaos/**/*.test.ts',
  'tests/dashboard/**/*.test.ts',
  'tests/conformance/client.test.ts',
  'tests/conformance/distant-memory.test.ts',
  'tests/e2e/cli-stack-moto.test.ts',
  'tests/e2e/cli-stack.test.ts',
  'tests/e2e/first-use.test.ts',
  'tests/e2e/readme-installed.test.ts',
  'tests/features/charge.test.ts',
  'tests/features/own-lease.test.ts',
  'tests/features/pause-processes.test.ts',
  'tests/features/portable.test.ts',
  'tests/features/priority.test.ts',
  'tests/features/slots-of-features.test.ts',
  'tests/infra/cfn-lint.test.ts',
  'tests/infra/checkov.test.ts',
  'tests/infra/policies.test.ts',
  'tests/integration/dynamodb/failures/**/*.test.ts',
  'tests/integration/caches-stay-flat.test.ts',
  'tests/integration/engines.test.ts',
  'tests/integration/llm/clients.test.ts',
  'tests/integration/manifest-large.test.ts',
  'tests/integration/memory-stays-flat.test.ts',
  'tests/integration/reconciler/**/*.test.ts',
  'tests/integration/revoked-key-outage.test.ts',
  'tests/integration/stack/adopt.test.ts',
  'tests/integration/stack/failures.test.ts',
  'tests/integration/stream/broken-answers.test.ts',
  'tests/integration/stream/exactly-once.test.ts',
  'tests/integration/stream/usage.test.ts',
  'tests/integration/stream/worker.test.ts',
  'tests/integrations/http/held-slots.test.ts',
  'tests/oracle/cut-asks.test.ts',
  'tests/packaging.test.ts',
  'tests/types/compiled.test.ts',
  'tests/upgrade/dynamodb-migrations.test.ts',
];

/** Properties that `npm test` tries with an eighth of their cases (`tests/support/runs.ts`), and `test:chaos` with all. */
export const MANY_CASES = [
  'src/backends/dynamodb/acquire/change-shards.test.ts',
  'src/backends/dynamodb/bucket/group/group-write-reach.test.ts',
  'src/backends/dynamodb/bucket/group/group-write.test.ts',
  'src/backends/dynamodb/bucket/group/plan-group-portable.test.ts',
  'src/backends/dynamodb/bucket/group/plan-group-soundness.test.ts',
  'src/core/bucket/bucket-writes.test.ts',
  'src/core/bucket/decide.test.ts',
  'tests/features/portable-levels.test.ts',
  'tests/oracle/features.test.ts',
  'tests/oracle/oracle.test.ts',
  'tests/fuzz/limit.test.ts',
  'tests/fuzz/manifest.test.ts',
  'tests/integration/dynamodb/decisions/oracle.test.ts',
  'tests/integration/manifest-properties.test.ts',
  'tests/integration/resident-takes.test.ts',
  'tests/integration/same-answers.test.ts',
  'tests/server/every-operation-dynamodb.test.ts',
  'tests/server/every-operation.test.ts',
];

/** The conformance suite on engines that take minutes: `npm run test:engines`. */
const ENGINES = ['tests/engines/**/*.test.ts'];

/** The built site in a browser: part of `npm run docs`. */
const SITE = ['tests/site/**/*.test.ts'];

/** Suites that also run with the SDK's client where the default is the lean transport: conformance, costs, faults. */
export const ON_SDK = [
  'tests/chaos/dynamodb-deadlines.test.ts',
  'tests/chaos/dynamodb-faults.test.ts',
  'tests/conformance/dynamodb*.test.ts',
  'tests/integration/dynamodb/**/*.test.ts',
];

/** In such a project, stores that are opened without a client use the SDK's, not the lean transport. */
export const SDK_CLIENT = {
  env: { HEADGATE_TEST_CLIENT: 'sdk' },
  resolve: {
    alias: [
      {
        find: /^.*\/open-transport\.js$/,
        replacement: fileURLToPath(new URL('tests/support/dynamodb/sdk-open-transport.ts', import.meta.url)),
      },
    ],
  },
};

export const shared = {
  environment: 'node',
  testTimeout: 60_000,
  hookTimeout: 60_000,
  // Nothing may depend on how busy the machine is: only a test that hangs fails by its time.
  expect: { poll: { timeout: 30_000, interval: 5 } },
  env: { NODE_ENV: 'test', AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true' },
} as const;

/**
 * Files share what they have loaded, which takes as long as running them. So each leaves the process as it found it:
 * spies and fake timers are restored, and `runCli` gives the environment back.
 */
const together = { ...shared, isolate: false } as const;

export default defineConfig({
  test: {
    // Engines are processes of their own: two workers keep two processors busy.
    maxWorkers: 2,
    projects: [
      {
        test: {
          ...together,
          name: 'unit',
          include: ['src/**/*.test.ts', 'dashboard/src/**/*.test.ts'],
          exclude: CHAOS,
        },
      },
      {
        test: {
          ...together,
          name: 'whole',
          include: ['tests/**/*.test.ts', 'examples/**/*.test.ts'],
          exclude: [...CHAOS, ...ENGINES, ...SITE],
        },
      },
    ],
  },
});
