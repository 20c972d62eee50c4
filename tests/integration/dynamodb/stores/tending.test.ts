import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AccessDenied, BackendUnavailable } from '../../../../src/core/errors.js';
import { Limit } from '../../../../src/core/limit.js';
import { type Fault, fault } from '../../../../src/testing/dynamodb/index.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../../support/dynamodb/world.js';

const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rph: 1 } };
const LIMITS = [Limit.perHour('rph', 3_600_000)];
const SENSITIVE = { paceAbove: 5, splitAbove: 10 };

describe.skipIf(ENGINE.missing)(`splits in the background${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  /** The errors of a failing split, which no caller awaits. */
  const heardOf = async (wrong: Fault) => {
    const space = await world.space();
    const limiter = await space.open({ limits: LIMITS }, { pressure: SENSITIVE });
    const injected = world.proxy.inject(wrong, { operations: ['TransactWriteItems'] });
    for (let write = 0; injected.fired === 0; write++) {
      expect(write).toBeLessThan(100);
      await limiter.acquire(ASK);
      space.clock.set(space.clock.now() + 50);
    }
    world.proxy.heal();
    return space.errors;
  };

  test('a split that is not permitted reaches `onError`, and no caller', async () => {
    const heard = await heardOf(fault.accessDenied());
    await expect.poll(() => heard).toEqual([expect.any(AccessDenied)]);
  });

  test('a split that gets no answer reaches `onError`', async () => {
    const heard = await heardOf(fault.loseAnswer());
    await expect.poll(() => heard).toEqual([expect.any(BackendUnavailable)]);
  });
});
