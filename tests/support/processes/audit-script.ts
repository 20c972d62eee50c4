import { createEmbeddedBackend } from '../../../src/backends/embedded/embedded-backend.js';
import type { SqliteDriver } from '../../../src/backends/embedded/file/database/driver.js';
import { FileStorage } from '../../../src/backends/embedded/file/file-storage.js';
import { buildFirstNamespaceId } from '../../../src/core/identifiers.js';
import { Limit } from '../../../src/core/limit.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { fakeClock } from '../../../src/testing/fake-clock.js';

const START_MS = Date.UTC(2027, 0, 15, 8);
const STEP_MS = 1_000;
const KEY = { entityId: 'user-1', resource: 'gpt-4' };
const LIMITS = [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 6_000), Limit.concurrent('slots', 2)];

/** Every kind of administrative change. Each leaves one audit record, whose time tells which change it was. */
const STEPS: readonly ((limiter: RateLimiter) => Promise<unknown>)[] = [
  ({ entities }) => entities.create({ id: 'proj', name: 'Production', metadata: { tier: ['gold', 1] } }),
  ({ entities }) => entities.create({ id: 'user-1', parentId: 'proj', cascade: true }),
  ({ entities }) => entities.update('user-1', { name: 'Zoë', metadata: { a: 1 }, version: 1 }),
  ({ config }) => config.setSystem({ limits: LIMITS, onUnavailable: 'local' }),
  ({ config }) => config.setResource('gpt-4', { limits: LIMITS.slice(0, 2) }),
  ({ config }) => config.setEntity('user-1', 'gpt-4', { limits: LIMITS }),
  ({ config }) => config.setEntityDefault('user-1', { limits: LIMITS.slice(1) }),
  ({ config }) => config.setSystem({ onUnavailable: 'allow' }),
  resetUsedBucket,
  ({ namespaces }) => namespaces.register('acme'),
  async (limiter) => (await limiter.in('acme')).entities.create({ id: 'a' }),
  async (limiter) => (await limiter.in('acme')).config.setSystem({ limits: LIMITS }),
  async (limiter) => resetUsedBucket(await limiter.in('acme')),
  ({ namespaces }) => namespaces.delete('acme'),
  ({ namespaces }) => namespaces.recover('acme'),
  async (limiter) => (await limiter.in('acme')).config.delete('system'),
  ({ namespaces }) => namespaces.register('beta'),
  async (limiter) => (await limiter.in('beta')).entities.create({ id: 'b' }),
  async (limiter) => (await limiter.in('beta')).config.setEntity('b', 'gpt-4', { limits: LIMITS }),
  ({ namespaces }) => namespaces.delete('beta'),
  ({ namespaces }) => namespaces.purge('beta'),
  ({ namespaces }) => namespaces.register('beta'),
  async (limiter) => (await limiter.in('beta')).entities.create({ id: 'b' }),
  ({ config }) => config.delete(KEY),
  ({ config }) => config.delete({ entityId: 'user-1' }),
  ({ config }) => config.delete({ resource: 'gpt-4' }),
  ({ config }) => config.delete('system'),
  ({ entities }) => entities.update('user-1', { parentId: null, cascade: false }),
  ({ entities }) => entities.delete('proj'),
  ({ entities }) => entities.delete('user-1'),
  ({ entities }) => entities.create({ id: 'proj', metadata: { again: true } }),
  ({ namespaces }) => namespaces.delete('acme'),
];

/** The take is not an administrative change. It is made once, however often the step runs. */
async function resetUsedBucket(limiter: RateLimiter): Promise<void> {
  if ((await limiter.buckets.get(KEY)) === null) await limiter.acquire({ ...KEY, consume: { rpm: 5, tpm: 100 } });
  await limiter.buckets.reset(KEY);
}

/** The number of steps with an audit record, from the times of all records. */
export function stepsDone(timesMs: readonly number[]): number {
  return Math.max(0, ...timesMs.map((atMs) => (atMs - START_MS) / STEP_MS + 1));
}

export const ALL_STEPS = STEPS.length;

/** Makes the changes, beginning with the given one. */
export async function runSteps(path: string, from: number, driver?: SqliteDriver): Promise<void> {
  const namespace = { id: buildFirstNamespaceId('default'), name: 'default' };
  const storage = new FileStorage({
    path,
    synchronous: 'normal',
    namespace,
    ...(driver === undefined ? {} : { driver }),
  });
  const clock = fakeClock(START_MS);
  const limiter = await RateLimiter.open(createEmbeddedBackend(storage), {
    clock,
    limits: LIMITS,
    principal: 'operator',
  });
  for (const [at, step] of STEPS.entries()) {
    clock.set(START_MS + at * STEP_MS);
    if (at >= from) await step(limiter);
  }
  await limiter.close();
}
