import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../../src/core/limit.js';
import type { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { type DynamoRequest, fault } from '../../../../src/testing/dynamodb/index.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../../support/dynamodb/world.js';

const LIMITS = { limits: [Limit.perMinute('rpm', 60)] };
const askOf = (entityId: string) => ({ entityId, resource: 'gpt-4', consume: { rpm: 1 } });
/** How an acquire ended: granted, or the code and kind of its error. */
const endOf = async (acquired: Promise<unknown>): Promise<string> => {
  try {
    await acquired;
    return 'granted';
  } catch (error) {
    const { code, kind } = error as { readonly code?: string; readonly kind?: string };
    return `${code} ${kind}`;
  }
};

describe.skipIf(ENGINE.missing)(`new entities that ask at one moment${ENGINE.note}`, () => {
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

  test('320 of them are all granted at a round trip of 5 ms, with one config read for 32 of them', async () => {
    const timeouts = { callMs: 60_000, acquireMs: 60_000 };
    const limiter = await (await world.space()).open({ ...LIMITS, timeouts });
    world.proxy.inject(fault.holdAnswer(5));
    world.proxy.requests.clear();
    expect(await acquireAll(limiter, 320)).toEqual({ granted: 320 });
    // Of 100 keys, 2 are the same for all entities, and each entity has 3 of its own.
    expect(world.proxy.requests.byOperation()).toEqual({ BatchGetItem: Math.ceil(320 / 32), PutItem: 320 });
  });

  test('32 of them read 1.5 units each, and 1 for what they share', async () => {
    const limiter = await (await world.space()).open(LIMITS);
    world.proxy.requests.clear();
    await acquireAll(limiter, 32);
    expect(world.proxy.requests.consumed().readUnits).toBe(32 * 1.5 + 1);
  });

  test('one that asks while the read of another is under way is not delayed by it', async () => {
    const limiter = await (await world.space()).open(LIMITS);
    const held = world.proxy.inject(fault.holdAnswer(), { when: names('new-1') });
    const first = limiter.acquire(askOf('new-1'));
    await held.untilFired();
    await limiter.acquire(askOf('new-2'));
    held.release();
    await first;
  });

  test('keys that DynamoDB leaves unprocessed are read again, and keep only their own entities waiting', async () => {
    const limiter = await (await world.space()).open(LIMITS);
    world.proxy.inject(fault.processOnly(40), { times: 1 });
    // What was left is asked for again, and held back.
    const isSecond = (request: DynamoRequest) => names('new-31')(request) && !names('new-0')(request);
    const second = world.proxy.inject(fault.holdRequest(), { when: isSecond });
    const ends = Array.from({ length: 32 }, (_, at) => endOf(limiter.acquire(askOf(`new-${at}`))));
    expect(await ends[0]).toBe('granted');
    second.release();
    expect(await Promise.all(ends)).toEqual(ends.map(() => 'granted'));
  });

  test('one whose namespace may not be read does not fail those of another namespace', async () => {
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

  test('one whose caller leaves does not fail the others', async () => {
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

  test('a read that fails for all of them is one failure to each, not a breaker that opens', async () => {
    const space = await world.space();
    const limiter = await space.open({ ...LIMITS, timeouts: { callMs: 500, acquireMs: 500 } }, { random: () => 0 });
    world.proxy.inject(fault.serverError(), { operations: ['BatchGetItem'] });
    expect(await acquireAll(limiter, 20)).toEqual({ 'backend.unavailable server': 20 });
    world.proxy.heal();
    expect(await endOf(limiter.acquire(askOf('new-1')))).toBe('granted');
  });
});
