import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../../src/core/limit.js';
import type { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { type DynamoRequest, fault } from '../../../../src/testing/dynamodb/index.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../../support/dynamodb/world.js';

const LIMITS = { limits: [Limit.perMinute('rpm', 60)] };
const askOf = (entityId: string) => ({ entityId, resource: 'gpt-4', consume: { rpm: 1 } });
/** The result of an acquire: granted, or the code and kind of its error. */
const endOf = async (acquired: Promise<unknown>): Promise<string> => {
  try {
    await acquired;
    return 'granted';
  } catch (error) {
    const { code, kind } = error as { readonly code?: string; readonly kind?: string };
    return `${code} ${kind}`;
  }
};

describe.skipIf(ENGINE.missing)(`concurrent asks of new entities${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({ record: true, askForCapacity: true });
  });
  afterEach(() => world?.proxy.heal());
  afterAll(async () => world?.[Symbol.asyncDispose]());

  const acquireAll = async (limiter: RateLimiter, count: number): Promise<Readonly<Record<string, number>>> => {
    const ends = await Promise.all(
      Array.from({ length: count }, (_, at) => endOf(limiter.acquire(askOf(`new-${at}`)))),
    );
    const counts: Record<string, number> = {};
    for (const end of ends) counts[end] = (counts[end] ?? 0) + 1;
    return counts;
  };
  const names = (text: string) => (request: DynamoRequest) =>
    request.operation === 'BatchGetItem' && JSON.stringify(request.body).includes(text);

  test('concurrent asks of 320 new entities are all granted at a round trip of 5 ms, with one config read per 32 entities', async () => {
    const timeouts = { callMs: 60_000, acquireMs: 60_000 };
    const limiter = await (await world.space()).open({ ...LIMITS, timeouts });
    world.proxy.inject(fault.holdAnswer(5));
    world.proxy.requests.clear();
    expect(await acquireAll(limiter, 320)).toEqual({ granted: 320 });
    // Of 100 keys, all entities share 2, and each entity has 3.
    expect(world.proxy.requests.byOperation()).toEqual({ BatchGetItem: Math.ceil(320 / 32), PutItem: 320 });
  });

  test('concurrent asks of 32 new entities read 1.5 units each, and 1 unit for the shared levels', async () => {
    const limiter = await (await world.space()).open(LIMITS);
    world.proxy.requests.clear();
    await acquireAll(limiter, 32);
    expect(world.proxy.requests.consumed().readUnits).toBe(32 * 1.5 + 1);
  });

  test('the config read of one new entity does not delay another new entity', async () => {
    const limiter = await (await world.space()).open(LIMITS);
    const held = world.proxy.inject(fault.holdAnswer(), { when: names('new-1') });
    const first = endOf(limiter.acquire(askOf('new-1')));
    await held.untilFired();
    expect(await endOf(limiter.acquire(askOf('new-2')))).toBe('granted');
    held.release();
    expect(await first).toBe('granted');
  });

  test('unprocessed keys are read again, and delay only their own entities', async () => {
    const limiter = await (await world.space()).open(LIMITS);
    world.proxy.inject(fault.processOnly(40), { times: 1 });
    // Holds the request for the unprocessed keys.
    const isSecond = (request: DynamoRequest) => names('new-31')(request) && !names('new-0')(request);
    const second = world.proxy.inject(fault.holdRequest(), { when: isSecond });
    const ends = Array.from({ length: 32 }, (_, at) => endOf(limiter.acquire(askOf(`new-${at}`))));
    expect(await ends[0]).toBe('granted');
    second.release();
    expect(await Promise.all(ends)).toEqual(ends.map(() => 'granted'));
  });

  test('a denied read of one namespace does not fail new entities of another namespace', async () => {
    const [own, other] = [await world.space(), await world.space()];
    const limiter = await own.open(LIMITS);
    const refused = await limiter.in(other.namespace);
    world.proxy.inject(fault.accessDenied(), { when: names(`${other.ns}/`) });
    const ends = await Promise.all([
      endOf(limiter.acquire(askOf('new-1'))),
      endOf(refused.acquire(askOf('new-2'))),
      endOf(limiter.acquire(askOf('new-3'))),
    ]);
    expect(ends).toEqual(['granted', 'backend.denied undefined', 'granted']);
  });

  test('an aborted ask does not fail the asks that share its config read', async () => {
    const limiter = await (await world.space()).open(LIMITS);
    const leaving = new AbortController();
    const held = world.proxy.inject(fault.holdAnswer(), { operations: ['BatchGetItem'] });
    const left = limiter.acquire({ ...askOf('new-1'), signal: leaving.signal });
    const stays = limiter.acquire(askOf('new-2'));
    await held.untilFired();
    leaving.abort(new Error('left'));
    held.release();
    await expect(left).rejects.toThrow('left');
    expect(await endOf(stays)).toBe('granted');
  });

  test('a config read that fails for many new entities counts as one failure, and does not open the breaker', async () => {
    const space = await world.space();
    const limiter = await space.open({ ...LIMITS, timeouts: { callMs: 500, acquireMs: 500 } }, { random: () => 0 });
    world.proxy.inject(fault.serverError(), { operations: ['BatchGetItem'] });
    expect(await acquireAll(limiter, 20)).toEqual({ 'backend.unavailable server': 20 });
    world.proxy.heal();
    expect(await endOf(limiter.acquire(askOf('new-1')))).toBe('granted');
  });
});
