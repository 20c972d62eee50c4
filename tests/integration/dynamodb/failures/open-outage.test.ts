import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { dynamodb } from '../../../../src/backends/dynamodb/index.js';
import { type Clock, systemClock } from '../../../../src/clock.js';
import { Limit } from '../../../../src/core/limit.js';
import type { LimiterOptions } from '../../../../src/limiter/options.js';
import { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../../support/dynamodb/world.js';

const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };

describe.skipIf(ENGINE.missing)(`opening while DynamoDB refuses connections${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterEach(() => world.proxy.accept());
  afterAll(() => world?.[Symbol.asyncDispose]());

  const open = (options: LimiterOptions): Promise<RateLimiter> => {
    const { region } = world.engine;
    const store = dynamodb({ table: world.table.name, region, endpoint: world.proxy.endpoint });
    return RateLimiter.open(store, { limits: [Limit.perMinute('rpm', 60)], onError: () => {}, ...options });
  };

  test.each([
    ['allow', 'open'],
    ['local', 'fallback'],
  ] as const)(
    'a limiter opens during an outage under %s, and uses the table once it can be reached',
    async (onUnavailable, decidedBy) => {
      await world.proxy.refuse();
      await using limiter = await open({ onUnavailable });
      expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy });
      await world.proxy.accept();
      await vi.waitFor(async () => expect(await limiter.tryAcquire(ASK)).toMatchObject({ decidedBy: 'store' }), 20_000);
    },
  );

  test('a limiter opens under block if the table can be reached before openMs is over', async () => {
    await world.proxy.refuse();
    let pauses = 0;
    const healsInTheFirstPause: Required<Clock> = {
      now: systemClock.now,
      sleep: async (ms, signal, options) => {
        if (ms < 1_000) {
          pauses += 1;
          await world.proxy.accept();
        }
        return systemClock.sleep(ms, signal, options);
      },
    };
    await using limiter = await open({ timeouts: { openMs: 20_000 }, clock: healsInTheFirstPause });
    expect(pauses).toBe(1);
    expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: true, decidedBy: 'store' });
  });

  test('the opening rejects under block when openMs is over', async () => {
    await world.proxy.refuse();
    await expect(open({ timeouts: { openMs: 250 } })).rejects.toMatchObject({ code: 'backend.unavailable' });
  });
});
