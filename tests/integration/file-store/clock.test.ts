import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { file } from '../../../src/backends/embedded/file/file.js';
import { systemClock } from '../../../src/clock.js';
import { Limit } from '../../../src/core/limit.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';

const TEN_MINUTES_MS = 600_000;
const CAPACITY = 10;
/** One token a minute: no refill during a test, and a step of ten minutes is worth the whole capacity. */
const RATE = Limit.custom('jobs', { capacity: CAPACITY, refillAmount: CAPACITY, refillPeriodMs: TEN_MINUTES_MS });
const LIMITS = [RATE, Limit.concurrent('slots', CAPACITY)];
const OF = { entityId: 'pot', resource: 'gpt-4' };
const trueNow = Date.now.bind(Date);
const folder = mkdtempSync(join(tmpdir(), 'headgate-clock-'));
const opened: RateLimiter[] = [];
let files = 0;

afterEach(async () => {
  vi.restoreAllMocks();
  for (const limiter of opened.splice(0)) await limiter.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function stepWallClock(stepMs: number): void {
  vi.spyOn(Date, 'now').mockImplementation(() => trueNow() + stepMs);
}

/** Opens a limiter with its own connection, like a separate process. */
async function openOn(path: string, errors: unknown[] = [], now: (() => number) | null = null): Promise<RateLimiter> {
  const clock = now === null ? systemClock : { now };
  const onError = (error: unknown): void => void errors.push(error);
  const limiter = await RateLimiter.open(file({ path }), { limits: LIMITS, clock, onError });
  opened.push(limiter);
  return limiter;
}

async function grantsOf(limiter: RateLimiter, name: string): Promise<number> {
  let grants = 0;
  while ((await limiter.tryAcquire({ ...OF, consume: { [name]: 1 } })).granted) grants += 1;
  return grants;
}

async function figures(stepped: RateLimiter, other: RateLimiter) {
  const minted = await grantsOf(stepped, 'jobs');
  const takenSlots = await grantsOf(stepped, 'slots');
  const { retryAfterMs = 0 } = (await other.tryAcquire({ ...OF, consume: { jobs: 1 } })) as { retryAfterMs?: number };
  console.log(`minted ${minted} of ${CAPACITY}, took ${takenSlots} held slots, others wait ${retryAfterMs} ms`);
  return { minted, takenSlots, othersWaitAtMostAMinute: retryAfterMs <= 60_000 };
}
const HARMLESS = { minted: 0, takenSlots: 0, othersWaitAtMostAMinute: true };

test.each([TEN_MINUTES_MS, -TEN_MINUTES_MS])(
  'a step of the wall clock by %d ms mints no tokens for a process with an open file, and takes none from others',
  async (stepMs) => {
    const path = join(folder, `${files++}.db`);
    const stepped = await openOn(path);
    const other = await openOn(path, [], trueNow);
    await other.acquire({ ...OF, consume: { jobs: CAPACITY, slots: CAPACITY } });
    stepWallClock(stepMs);
    expect(await figures(stepped, other)).toEqual(HARMLESS);
  },
);

test.each([TEN_MINUTES_MS, -TEN_MINUTES_MS])(
  'a process that opens a file after a step of its clock by %d ms uses the time of the others, and reports the step',
  async (stepMs) => {
    const path = join(folder, `${files++}.db`);
    const other = await openOn(path);
    await other.acquire({ ...OF, consume: { jobs: CAPACITY, slots: CAPACITY } });
    stepWallClock(stepMs);
    const errors: { readonly message: string }[] = [];
    const late = await openOn(path, errors);
    expect(await figures(late, other)).toEqual(HARMLESS);
    expect(errors).toMatchObject([{ code: 'infrastructure.clock' }]);
    expect(errors[0]?.message).toMatch(stepMs > 0 ? /\d{6} ms ahead of/ : /\d{6} ms behind/);
  },
);
