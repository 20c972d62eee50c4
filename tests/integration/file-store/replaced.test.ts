import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { file } from '../../../src/backends/embedded/file/file.js';
import { Limit } from '../../../src/core/limit.js';
import type { Lease } from '../../../src/limiter/lease/lease.js';
import type { LimiterOptions } from '../../../src/limiter/options.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { fakeClock } from '../../../src/testing/fake-clock.js';
import { checkIntegrity } from '../../support/file/file-rows.js';
import { type Replacement, REPLACEMENTS, replaceFile } from '../../support/file/replace-file.js';

const CAPACITY = 10;
const LIMITS = [Limit.concurrent('slots', CAPACITY)];
const ASK = { entityId: 'pot', resource: 'gpu', consume: { slots: 1 }, leaseTtlMs: 600_000 };
const folder = mkdtempSync(join(tmpdir(), 'headgate-replaced-'));
const opened: RateLimiter[] = [];
let files = 0;

afterEach(async () => {
  for (const limiter of opened.splice(0)) await limiter.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/**
 * A path in a new folder, and a function that opens limiters on it, each with its own connection like a separate
 * process.
 */
function newPlace() {
  const home = join(folder, String(files++));
  mkdirSync(home);
  const path = join(home, 'limits.db');
  const clock = fakeClock();
  const errors: unknown[] = [];
  const open = async (options: LimiterOptions = {}): Promise<RateLimiter> => {
    const onError = (error: unknown): void => void errors.push(error);
    const limiter = await RateLimiter.open(file({ path }), { limits: LIMITS, clock, onError, ...options });
    opened.push(limiter);
    return limiter;
  };
  return { home, path, clock, errors, open };
}

async function take(limiter: RateLimiter, count: number): Promise<readonly Lease[]> {
  const leases: Lease[] = [];
  for (let n = 0; n < count; n++) {
    const decision = await limiter.tryAcquire(ASK);
    if (decision.granted) leases.push(decision.lease);
  }
  return leases;
}

/** The paths of the files below a folder that this process has open. Linux appends " (deleted)" to removed ones. */
function openFiles(home: string): readonly string[] {
  const descriptors = '/proc/self/fd';
  const paths = readdirSync(descriptors).map((descriptor) => {
    try {
      return readlinkSync(join(descriptors, descriptor));
    } catch {
      return ''; // Closed meanwhile.
    }
  });
  return paths.filter((path) => path.startsWith(home)).toSorted();
}

/** The number of leases that their store still has. */
async function aliveOf(leases: readonly Lease[]): Promise<number> {
  let alive = 0;
  for (const lease of leases) {
    const extended = await lease.extend().then(
      () => true,
      () => false,
    );
    if (extended) alive += 1;
  }
  return alive;
}

describe('files that are replaced while processes have them open', () => {
  test.each(['removed', 'replaced'] as const)(
    'a second after the file was %s, no more leases are alive than there are slots',
    async (how) => {
      const { path, clock, errors, open } = newPlace();
      const first = await open();
      const before = await take(first, 7);
      await replaceFile(path, how);
      const second = await open();
      const after = await take(second, CAPACITY);
      await clock.advance(1_000);
      const alive = (await aliveOf(before)) + (await aliveOf(after));
      console.log(`${how}: ${alive} alive of ${CAPACITY}, then ${(await take(first, 1)).length} more is granted`);
      expect(alive).toBe(CAPACITY);
      expect(await take(first, 1)).toEqual([]);
      expect(errors).toMatchObject([{ code: 'infrastructure.file' }]);
    },
  );

  test.each(REPLACEMENTS)(
    'a second after the file was %s, the next file is used without any data of the old one',
    async (how) => {
      const { path, clock, errors, open } = newPlace();
      const limiter = await open();
      const before = await take(limiter, 7);
      await replaceFile(path, how);
      await clock.advance(1_000);
      expect(await aliveOf(before)).toBe(0);
      expect(await aliveOf(await take(limiter, CAPACITY))).toBe(CAPACITY);
      expect(await limiter.entities.get('maker')).toEqual(how.startsWith('replaced') ? expect.anything() : null);
      expect(errors).toMatchObject([{ code: 'infrastructure.file' }]);
      await limiter.close();
      expect(await checkIntegrity(path)).toBe('ok');
    },
  );

  test.skipIf(process.platform !== 'linux').each(REPLACEMENTS)(
    'a process that notices that the file was %s soon has no old file open, and no lock on it',
    async (how) => {
      const { home, path, clock, open } = newPlace();
      const limiter = await open();
      await take(limiter, 1);
      await replaceFile(path, how);
      await clock.advance(1_000);
      await take(limiter, 1);
      // The files are closed within a few turns of the event loop, without a wait for Node's next garbage collection.
      for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
      expect(openFiles(home)).toEqual([path, `${path}-shm`, `${path}-wal`]);
    },
  );

  test('a renamed file has the data of its log', async () => {
    const { path, clock, open } = newPlace();
    const limiter = await open();
    await take(limiter, 3);
    await replaceFile(path, 'renamed');
    await clock.advance(1_000);
    await take(limiter, 1);
    copyFileSync(`${path}.old`, `${path}.copy`);
    const renamed = await RateLimiter.open(file({ path: `${path}.copy` }), { limits: LIMITS, clock });
    opened.push(renamed);
    expect((await renamed.leases.list(ASK)).items).toHaveLength(3);
  });

  test('releasing a lease of the old file changes nothing in the new one', async () => {
    const { path, clock, open } = newPlace();
    const limiter = await open();
    const [old] = await take(limiter, 1);
    await replaceFile(path, 'removed');
    await clock.advance(1_000);
    const held = await take(limiter, CAPACITY);
    await old?.release();
    expect(await take(limiter, 1)).toEqual([]);
    expect(await aliveOf(held)).toBe(CAPACITY);
  });
});

describe('a folder that is removed with the file', () => {
  test('a removed folder is an outage, and the policy decides', async () => {
    const { home, clock, open } = newPlace();
    const [blocks, allows] = [await open(), await open({ onUnavailable: 'allow' })];
    await take(blocks, 1);
    await take(allows, 1);
    rmSync(home, { recursive: true });
    await clock.advance(1_000);
    await expect(blocks.tryAcquire(ASK)).rejects.toMatchObject({ code: 'backend.unavailable', kind: 'server' });
    expect(await allows.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'open' });
    expect(existsSync(home)).toBe(false);
    mkdirSync(home);
    expect(await blocks.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'store' });
  });
});

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('take' as const), who: fc.nat({ max: 2 }), count: fc.nat(4) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.nat(1_500) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('replace' as const),
      how: fc.constantFrom<Replacement>('removed', 'replaced'),
    }),
  },
);

test('a second after any replacement, no more leases are alive than the file has slots', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
      const { path, clock, open } = newPlace();
      const limiters = [await open(), await open(), await open()];
      const leases: Lease[] = [];
      for (const taken of steps) {
        if (taken.kind === 'take') leases.push(...(await take(limiters[taken.who]!, taken.count)));
        else if (taken.kind === 'pass') await clock.advance(taken.ms);
        else if (existsSync(path)) await replaceFile(path, taken.how);
      }
      await clock.advance(1_000);
      expect(await aliveOf(leases)).toBeLessThanOrEqual(CAPACITY);
      for (const limiter of limiters) leases.push(...(await take(limiter, CAPACITY)));
      expect(await aliveOf(leases)).toBe(CAPACITY);
      for (const limiter of limiters) await limiter.close();
    }),
    { numRuns: 40 },
  );
});
