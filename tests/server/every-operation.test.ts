import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseSentFile } from '../../src/cli/limits/parse-sent-file.js';
import type { RateLimiter } from '../../src/index.js';
import { OPERATIONS } from '../../src/server/operations/index.js';
import { runs, runsAll } from '../support/runs.js';
import { calls, expectAnswers, type Seen } from '../support/server/operation-calls.js';
import { requestServer } from '../support/server/request-server.js';

const RESOURCES = ['gpt-4', 'gpt-5'];
const ALL = { limit: 1_000 };

/**
 * All that the API shows of a namespace. Balances change with time, so that counters stand for them. A pause that ends leaves
 * the exported file, so that the list of entities, which shows its end, stands for it.
 */
async function contentsOf(limiter: RateLimiter): Promise<unknown> {
  const [entities, levels, audit, leases, marks] = await Promise.all([
    limiter.entities.list(ALL),
    limiter.config.all(ALL),
    limiter.audit.list(ALL),
    limiter.leases.list(ALL),
    limiter.manifest.export(),
  ]);
  const buckets = await Promise.all(RESOURCES.map((resource) => limiter.buckets.list({ resource, ...ALL })));
  const usage = await Promise.all(
    RESOURCES.map((resource) => limiter.usage.query({ resource, window: 'hourly', ...ALL })),
  );
  return [
    entities.items,
    levels.items.map((entry) => ({ ...entry, limits: entry.limits.map(String) })),
    audit.items,
    leases.items,
    JSON.stringify(marks, (field, value: unknown) => (field === 'paused' ? undefined : value)),
    usage.map(({ items }) => items),
    buckets.flatMap(({ items }) =>
      items.map(({ limits, ...bucket }) => ({
        ...bucket,
        consumed: limits.map(({ limit, consumed }) => `${String(limit)} ${consumed}`),
      })),
    ),
  ];
}

async function storeContents(opened: RateLimiter): Promise<string> {
  const namespaces = (await opened.namespaces.list(ALL)).items;
  const spaces = await Promise.all(namespaces.map(async ({ name }) => contentsOf(await opened.in(name))));
  return JSON.stringify([namespaces, spaces]);
}

test('on memory, any input to any operation is answered by its schema or a problem, and a refusal changes nothing', async () => {
  const seen: Seen = new Map();
  await fc.assert(
    fc.asyncProperty(calls, async (list) => {
      const opened = await requestServer({ parseLimitsFile: parseSentFile });
      await expectAnswers(opened, list, () => storeContents(opened.limiter), seen);
      await opened.limiter.close();
    }),
    { numRuns: runs(600) },
  );
  if (!runsAll) return;
  const succeeded = OPERATIONS.filter(({ id, status }) => seen.has(`${id} ${status}`)).map(({ id }) => id);
  expect(OPERATIONS.map(({ id }) => id).filter((id) => !succeeded.includes(id))).toEqual([]);
});
