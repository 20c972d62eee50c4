import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../../src/clock.js';
import { Limit } from '../../../../src/core/limit.js';
import type { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { fault } from '../../../../src/testing/dynamodb/index.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../../support/dynamodb/world.js';

const TEN_MINUTES_MS = 600_000;
const CAPACITY = 10;
/** One token a minute: no refill during a test, and a step of ten minutes is worth the whole capacity. */
const RATE = Limit.custom('jobs', { capacity: CAPACITY, refillAmount: CAPACITY, refillPeriodMs: TEN_MINUTES_MS });
const SLOTS = Limit.concurrent('slots', CAPACITY);
const OF = { entityId: 'pot', resource: 'gpt-4' };
const trueNow = Date.now.bind(Date);

describe.skipIf(ENGINE.missing)(`a wall clock that is set while the process uses a table${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterEach(() => {
    vi.restoreAllMocks();
    world.proxy.heal();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  /** Sets the clock of this machine. The Date of answers stays the store's. */
  const stepWallClock = (stepMs: number): void => {
    vi.spyOn(Date, 'now').mockImplementation(() => trueNow() + stepMs);
  };

  const grantsOf = async (limiter: RateLimiter, name: string): Promise<number> => {
    let grants = 0;
    while ((await limiter.tryAcquire({ ...OF, consume: { [name]: 1 } })).granted) grants += 1;
    return grants;
  };

  /**
   * A process on this machine, whose clock will be set, and one on a machine with a right clock, which took all tokens.
   */
  const openBoth = async () => {
    const space = await world.space();
    const common = { limits: [RATE, SLOTS], denyCacheMs: 0 };
    const other = await space.open({ ...common, clock: { now: trueNow } });
    const stepped = await space.open({ ...common, clock: systemClock });
    await stepped.acquire({ ...OF, consume: { jobs: 0 } });
    await other.acquire({ ...OF, consume: { jobs: CAPACITY, slots: CAPACITY } });
    return { space, other, stepped };
  };

  const figures = async ({ other, stepped }: Awaited<ReturnType<typeof openBoth>>) => {
    const minted = await grantsOf(stepped, 'jobs');
    const takenSlots = await grantsOf(stepped, 'slots');
    const { retryAfterMs = 0 } = (await other.tryAcquire({ ...OF, consume: { jobs: 1 } })) as { retryAfterMs?: number };
    console.log(`minted ${minted} of ${CAPACITY}, took ${takenSlots} held slots, others wait ${retryAfterMs} ms`);
    return { minted, takenSlots, othersWaitAtMostAMinute: retryAfterMs <= 60_000 };
  };
  const HARMLESS = { minted: 0, takenSlots: 0, othersWaitAtMostAMinute: true };

  test.each([TEN_MINUTES_MS, -TEN_MINUTES_MS])(
    'a step of the wall clock by %d ms mints no tokens, and delays no other machine',
    async (stepMs) => {
      const both = await openBoth();
      stepWallClock(stepMs);
      expect(await figures(both)).toEqual(HARMLESS);
    },
  );

  test('one answer with a wrong Date mints no tokens, and is reported', async () => {
    const both = await openBoth();
    world.proxy.inject(fault.shiftDate(TEN_MINUTES_MS), { times: 1 });
    await both.stepped.status(OF);
    expect(await figures(both)).toEqual(HARMLESS);
    expect(both.space.errors).toMatchObject([{ code: 'infrastructure.clock' }]);
  });

  test('a wrong Date in the first answer mints no tokens', async () => {
    const space = await world.space();
    const common = { limits: [RATE, SLOTS], denyCacheMs: 0 };
    const other = await space.open({ ...common, clock: { now: trueNow } });
    await other.acquire({ ...OF, consume: { jobs: CAPACITY, slots: CAPACITY } });
    world.proxy.inject(fault.shiftDate(TEN_MINUTES_MS), { times: 1 });
    const stepped = await space.open({ ...common, clock: systemClock });
    expect(await figures({ space, other, stepped })).toEqual(HARMLESS);
  });
});
