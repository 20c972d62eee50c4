import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import type { Backend } from '../../../src/backend.js';
import { createEmbeddedBackend } from '../../../src/backends/embedded/embedded-backend.js';
import { file } from '../../../src/backends/embedded/file/file.js';
import { FileStorage } from '../../../src/backends/embedded/file/file-storage.js';
import { memory } from '../../../src/backends/embedded/memory.js';
import { buildFirstNamespaceId } from '../../../src/core/identifiers.js';
import { Limit } from '../../../src/core/limit.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { type FakeClock, fakeClock } from '../../../src/testing/fake-clock.js';
import { loadWatchedDriver } from '../../support/file/watched-driver.js';

const folder = mkdtempSync(join(tmpdir(), 'headgate-known-'));
const LIMITS = [Limit.parse('rpm:20/min'), Limit.parse('slots:3/concurrent')];
const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };
const NAMESPACE = { id: buildFirstNamespaceId('default'), name: 'default' };

let files = 0;
let path: string;
let clock: FakeClock;
let opened: RateLimiter[] = [];

beforeEach(() => {
  path = join(folder, `${files++}.db`);
  clock = fakeClock();
});
afterEach(async () => {
  for (const limiter of opened.splice(0)) await limiter.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function open(backend: Backend = file({ path })): Promise<RateLimiter> {
  const limiter = await RateLimiter.open(backend, { limits: LIMITS, clock });
  opened.push(limiter);
  return limiter;
}

/** A limiter whose statements the test sees. */
async function openWatched(onStatement: (sql: string) => void): Promise<RateLimiter> {
  const driver = await loadWatchedDriver(onStatement);
  return open(createEmbeddedBackend(new FileStorage({ path, synchronous: 'normal', namespace: NAMESPACE, driver })));
}

async function acquiresOf(limiter: RateLimiter): Promise<number | undefined> {
  return (await limiter.buckets.get(ASK))?.acquires;
}

test('an acquire from a bucket that this process wrote last is one statement in its transaction', async () => {
  const statements: string[] = [];
  const limiter = await openWatched((sql) => statements.push(sql));
  await limiter.acquire(ASK);
  statements.length = 0;
  const lease = await limiter.acquire(ASK);
  await lease.commit();
  expect(statements).toEqual(['BEGIN IMMEDIATE', expect.stringMatching(/^UPDATE buckets SET state/), 'COMMIT']);
});

test('processes that take turns on one bucket are granted its capacity and no more', async () => {
  const limiters = [await open(), await open(), await open()];
  let granted = 0;
  for (let turn = 0; turn < 60; turn++) {
    const decision = await limiters[turn % 3]!.tryAcquire(ASK);
    if (decision.granted) granted += 1;
  }
  expect(granted).toBe(20);
  expect(await acquiresOf(limiters[0]!)).toBe(20);
});

test('an acquire in a namespace that another process has deleted is refused, and changes nothing', async () => {
  const [limiter, other] = [await open(), await open()];
  await limiter.acquire(ASK);
  const { id } = await other.namespaces.delete('default');
  await expect(limiter.acquire(ASK)).rejects.toMatchObject({ code: 'namespace.missing' });
  await other.namespaces.recover(id);
  expect(await acquiresOf(limiter)).toBe(1);
});

test('an acquire from a bucket that another process has removed starts with a full bucket', async () => {
  const limiter = await open();
  for (let time = 0; time < 20; time++) await limiter.acquire(ASK);
  const driver = await loadWatchedDriver(() => {});
  const database = driver.open(path);
  database.exec('DELETE FROM buckets');
  database.close();
  expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true });
  expect(await acquiresOf(limiter)).toBe(1);
});

test('an acquire whose transaction could not be committed takes nothing from the next one', async () => {
  let isFull = false;
  const limiter = await openWatched((sql) => {
    if (!isFull || sql !== 'COMMIT') return;
    isFull = false;
    throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });
  });
  await limiter.acquire(ASK);
  isFull = true;
  await expect(limiter.acquire({ ...ASK, onUnavailable: 'block' })).rejects.toMatchObject({
    code: 'backend.unavailable',
  });
  await limiter.acquire(ASK);
  expect(await acquiresOf(limiter)).toBe(2);
});

const ENTITIES = ['user-1', 'user-2', 'parent'] as const;
const anyStep = fc.record({
  process: fc.nat(2),
  entityId: fc.constantFrom(...ENTITIES),
  act: fc.oneof(
    { weight: 8, arbitrary: fc.record({ rpm: fc.nat(6) }) },
    { weight: 3, arbitrary: fc.record({ rpm: fc.nat(2), slots: fc.integer({ min: 1, max: 2 }) }) },
    { weight: 4, arbitrary: fc.constantFrom('commit', 'rollback', 'adjust', 'extend') },
    { weight: 2, arbitrary: fc.constantFrom('reset', 'configure', 'cascade') },
  ),
  passMs: fc.constantFrom(0, 0, 0, 1, 700, 30_000, 3_600_000),
});
type Step = typeof anyStep extends fc.Arbitrary<infer S> ? S : never;

test('three processes on one file get the answers of one memory store, whatever they do in which order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 5, maxLength: 40 }), async (steps) => {
      const shared = memory();
      path = join(folder, `${files++}.db`);
      expect(await play(steps, () => file({ path }))).toEqual(await play(steps, () => shared));
    }),
    { numRuns: 25 },
  );
});

/** Returns each answer, and the buckets at the end. */
async function play(steps: readonly Step[], connect: () => Backend): Promise<readonly unknown[]> {
  clock = fakeClock();
  const limiters = [await open(connect()), await open(connect()), await open(connect())];
  const leases: Awaited<ReturnType<RateLimiter['acquire']>>[] = [];
  const answers: unknown[] = [];
  for (const { process, entityId, act, passMs } of steps) {
    await clock.advance(passMs);
    const limiter = limiters[process]!;
    const where = { entityId, resource: 'gpt-4' };
    const answer = async (): Promise<unknown> => {
      if (typeof act === 'object') {
        const decision = await limiter.tryAcquire({ ...where, consume: { ...act } });
        if (!decision.granted) return [decision.reason, decision.retryAfterMs, decision.statuses];
        leases.push(decision.lease);
        return decision.statuses;
      }
      const lease = leases.at(-1);
      if (act === 'reset') return limiter.buckets.reset(where);
      if (act === 'configure')
        return limiter.config.setEntity(entityId, 'gpt-4', { limits: [Limit.parse('rpm:9/min')] });
      if (act === 'cascade') {
        await limiter.entities.create({ id: 'parent' });
        return limiter.entities.create({ id: 'user-1', parentId: 'parent', cascade: true });
      }
      if (act === 'adjust') return lease?.adjust({ rpm: 1 });
      if (act === 'extend') return lease?.extend();
      leases.pop();
      return act === 'commit' ? lease?.commit() : lease?.rollback();
    };
    answers.push(await answer().then(plain, (error: Error) => error.name));
  }
  for (const entityId of ENTITIES) answers.push(plain(await limiters[0]!.buckets.get({ entityId, resource: 'gpt-4' })));
  for (const limiter of opened.splice(0)) await limiter.close();
  return answers;
}

function plain(value: unknown): unknown {
  return value === undefined ? null : JSON.parse(JSON.stringify(value));
}
