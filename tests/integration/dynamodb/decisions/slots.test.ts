import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LeaseClosed } from '../../../../src/core/errors.js';
import { Limit } from '../../../../src/core/limit.js';
import { type DynamoRequest, fault } from '../../../../src/testing/dynamodb/index.js';
import { fakeClock } from '../../../../src/testing/fake-clock.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';

/** Shorter than the cache lifetimes of config and namespace, so that those are not read again. */
const TTL_MS = 10_000;
const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { slots: 1 } };
const limits = (count: number) => ({ limits: [Limit.concurrent('slots', count)] });
const slots = (count: number) => ({ ...limits(count), leaseTtlMs: TTL_MS });

describe.skipIf(ENGINE.missing)(`slots on DynamoDB${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld({ record: true });
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  /** The number of free slots, and the remaining time of each holder. */
  const stored = async (space: Space, entityId = 'user-1') => {
    const [shard] = await space.shards(entityId, 'gpt-4');
    const expiries = [...(shard?.holders.values() ?? [])].map(({ expiresAtMs }) => expiresAtMs - space.clock.now());
    return { free: Number(shard?.limits[0]?.tokensMilli) / 1_000, expiries };
  };
  /** Two processes with different clocks: for the second, a new lease of the first has just expired. */
  const aroundExpiry = async (space: Space, count: number) => {
    const holding = await space.open(slots(count));
    const clock = fakeClock(space.clock.now() + TTL_MS);
    const other = await space.open({ ...slots(count), clock });
    return { holding, other };
  };
  const afterTurns = async (turns: number): Promise<void> => {
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
  };

  const outcomeOf = async (extended: Promise<void>): Promise<'extended' | 'lost'> => {
    try {
      await extended;
      return 'extended';
    } catch (error) {
      expect(error).toBeInstanceOf(LeaseClosed);
      return 'lost';
    }
  };

  describe('releases', () => {
    test.each(['lose-answer', 'lose-request'] as const)(
      'a release that is sent again after %s counts once',
      async (kind) => {
        const space = await world.space();
        const limiter = await space.open(slots(3));
        const [lease] = [await limiter.acquire(ASK), await limiter.acquire(ASK)];
        const lost = world.proxy.inject(kind === 'lose-answer' ? fault.loseAnswer() : fault.loseRequest(), {
          times: 1,
        });
        await lease.release();
        expect(lost.fired).toBe(1);
        expect(await stored(space)).toEqual({ free: 2, expiries: [TTL_MS] });
        await lease.release();
        await lease.commit();
        expect(await stored(space)).toEqual({ free: 2, expiries: [TTL_MS] });
      },
    );

    test('a release after the expired slot was reclaimed does nothing', async () => {
      const space = await world.space();
      const { holding, other } = await aroundExpiry(space, 1);
      const lease = await holding.acquire(ASK);
      await other.acquire(ASK);
      await lease.release();
      expect(await stored(space)).toEqual({ free: 0, expiries: [2 * TTL_MS] });
      expect(lease.state).toBe('expired');
    });

    test('a concurrent release and reclaim of one holder count once, in either order', async () => {
      const space = await world.space();
      const { holding, other } = await aroundExpiry(space, 2);
      for (let round = 0; round < 24; round++) {
        const ask = { ...ASK, entityId: `user-${round}` };
        const lease = await holding.acquire(ask);
        const both = { ...ask, consume: { slots: 2 } };
        const acts = [() => lease.release(), () => other.acquire(both)];
        await Promise.all((round % 2 === 0 ? acts : acts.toReversed()).map((act) => act()));
        expect(await stored(space, ask.entityId)).toEqual({ free: 0, expiries: [2 * TTL_MS] });
      }
    });
  });

  describe('reclaims', () => {
    test('a reclaim takes the slots of a holder at the millisecond of its expiry, and counts the expiry', async () => {
      const space = await world.space();
      const [dead, limiter] = [await space.open(slots(1)), await space.open(slots(1))];
      await dead.acquire(ASK);
      await space.clock.advance(TTL_MS - 1);
      expect(await limiter.tryAcquire(ASK)).toMatchObject({ granted: false, retryAfterMs: 1 });
      await space.clock.advance(1);
      await limiter.acquire(ASK);
      const [shard] = await space.shards('user-1', 'gpt-4');
      expect(shard).toMatchObject({ expired: 1, acquires: 2 });
      expect(await stored(space)).toEqual({ free: 0, expiries: [TTL_MS] });
    });

    test('of a concurrent reclaim and extension one wins, and the slot is neither held twice nor lost', async () => {
      const space = await world.space();
      const holding = await space.open(slots(1));
      const clock = fakeClock(space.clock.now());
      const other = await space.open({ ...slots(1), clock });
      const won = { extended: 0, lost: 0 };
      // How many turns of the event loop the extension is ahead of the ask, or behind it if negative. Whoever won gets a later start, so
      // that the rounds are about the moment at which both arrive together, on a machine of any speed.
      let lead = 0;
      let step = 1;
      let last: 'extended' | 'lost' | null = null;
      for (let round = 0; round < 40; round++) {
        const ask = { ...ASK, entityId: `user-${round}` };
        const lease = await holding.acquire(ask);
        clock.set(space.clock.now());
        expect(await other.tryAcquire(ask)).toMatchObject({ granted: false });
        clock.set(space.clock.now() + TTL_MS);
        const extending = afterTurns(-lead).then(() => outcomeOf(lease.extend(2 * TTL_MS)));
        const [{ granted }, outcome] = await Promise.all([
          afterTurns(lead).then(() => other.tryAcquire(ask)),
          extending,
        ]);
        expect(granted).toBe(outcome === 'lost');
        expect(await stored(space, ask.entityId)).toEqual({ free: 0, expiries: [2 * TTL_MS] });
        won[outcome] += 1;
        step = outcome === last ? step * 2 : 1;
        lead += outcome === 'lost' ? step : -step;
        last = outcome;
      }
      expect(won.extended).toBeGreaterThan(0);
      expect(won.lost).toBeGreaterThan(0);
    });
  });

  describe('the order of a reclaim and an extension', () => {
    const setUp = async () => {
      const space = await world.space();
      const { holding, other } = await aroundExpiry(space, 1);
      const lease = await holding.acquire(ASK);
      const touchesHolder = ({ body }: DynamoRequest): boolean =>
        Object.values(body['ExpressionAttributeNames'] ?? {}).includes(`h_${lease.id}`);
      const held = world.proxy.inject(fault.holdRequest(), { when: touchesHolder, times: 1 });
      return { space, other, lease, held };
    };

    test('an extension that arrives after the reclaim fails, and aborts the signal of its lease', async () => {
      const { space, other, lease, held } = await setUp();
      const { signal } = lease;
      const extending = outcomeOf(lease.extend(3 * TTL_MS));
      await held.untilFired();
      await other.acquire(ASK);
      held.release();
      expect(await extending).toBe('lost');
      expect([signal.aborted, lease.state]).toEqual([true, 'expired']);
      expect(await stored(space)).toEqual({ free: 0, expiries: [2 * TTL_MS] });
    });

    test('a reclaim that arrives after the extension is refused, and so is its acquire', async () => {
      const { space, other, lease, held } = await setUp();
      const taking = other.tryAcquire(ASK);
      await held.untilFired();
      expect(await outcomeOf(lease.extend(2 * TTL_MS))).toBe('extended');
      held.release();
      expect(await taking).toMatchObject({ granted: false, reason: 'exhausted', retryAfterMs: TTL_MS });
      expect(await stored(space)).toEqual({ free: 0, expiries: [2 * TTL_MS] });
    });
  });

  describe('extensions of a cascade', () => {
    const createChain = async () => {
      const space = await world.space();
      const admin = await space.open();
      await admin.config.setSystem(limits(5));
      await admin.entities.create({ id: 'proj-1' });
      for (const id of ['user-1', 'user-2']) await admin.entities.create({ id, parentId: 'proj-1', cascade: true });
      await admin.config.setEntity('proj-1', 'gpt-4', limits(1));
      const limiter = await space.open({ leaseTtlMs: TTL_MS });
      return { space, limiter, lease: await limiter.acquire(ASK) };
    };

    test('an extension of a cascade moves the expiry at every level in one transaction', async () => {
      const { space, lease } = await createChain();
      world.proxy.requests.clear();
      await lease.extend(3 * TTL_MS);
      expect(await stored(space)).toEqual({ free: 4, expiries: [3 * TTL_MS] });
      expect(await stored(space, 'proj-1')).toEqual({ free: 0, expiries: [3 * TTL_MS] });
      expect(world.proxy.requests.byOperation()).toEqual({ TransactWriteItems: 1 });
    });

    test('an extension of a cascade moves no expiry if one of its holders was reclaimed', async () => {
      const { space, lease } = await createChain();
      const other = await space.open({ leaseTtlMs: TTL_MS, clock: fakeClock(space.clock.now() + TTL_MS) });
      // The other child needs the only slot of the parent, and reclaims it. The holder of user-1 stays.
      await other.acquire({ ...ASK, entityId: 'user-2' });
      expect(await outcomeOf(lease.extend(3 * TTL_MS))).toBe('lost');
      expect(await stored(space)).toEqual({ free: 4, expiries: [TTL_MS] });
      expect(await stored(space, 'proj-1')).toEqual({ free: 0, expiries: [2 * TTL_MS] });
    });

    test.each(['lose-answer', 'lose-request', 'conflict'] as const)(
      'an extension of a cascade succeeds after %s',
      async (kind) => {
        const { space, lease } = await createChain();
        const faults = {
          'lose-answer': fault.loseAnswer(),
          'lose-request': fault.loseRequest(),
          conflict: fault.transactionConflict(),
        };
        const struck = world.proxy.inject(faults[kind], { operations: ['TransactWriteItems'], times: 1 });
        await lease.extend(3 * TTL_MS);
        expect(struck.fired).toBe(1);
        expect(await stored(space)).toEqual({ free: 4, expiries: [3 * TTL_MS] });
        expect(await stored(space, 'proj-1')).toEqual({ free: 0, expiries: [3 * TTL_MS] });
      },
    );

    test('an extension of a cascade finds its holders while another write to the same bucket is in flight', async () => {
      const { space, limiter, lease } = await createChain();
      await lease.extend(2 * TTL_MS);
      // A transaction leaves no image, and the next write is still in flight.
      const held = world.proxy.inject(fault.holdRequest(), { operations: ['PutItem', 'UpdateItem'], times: 1 });
      const taking = limiter.tryAcquire(ASK);
      await held.untilFired();
      expect(await outcomeOf(lease.extend(3 * TTL_MS))).toBe('extended');
      held.release();
      expect(await taking).toMatchObject({ granted: false });
      expect(await stored(space)).toEqual({ free: 4, expiries: [3 * TTL_MS] });
    });
  });
});
