import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../../src/core/limit.js';
import { memory } from '../../../../src/index.js';
import type { Decision, Denied } from '../../../../src/limiter/acquire/decision.js';
import type { Lease } from '../../../../src/limiter/lease/lease.js';
import { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../../support/dynamodb/world.js';

const MUTEX = { entityId: 'nightly-report', resource: 'lock', consume: { mutex: 1 } };
const WORKERS = 5;
const TURNS_PER_WORKER = 8;

/**
 * The calls of a process at one instant: it releases one of its leases, then asks several times while the release is
 * written.
 */
interface Instant {
  readonly pauseMs: number;
  readonly released: number;
  readonly asks: readonly { readonly rpm: number; readonly slots: number; readonly leaseTtlMs: number }[];
}

const LIMITS = [
  Limit.custom('rpm', { capacity: 8, refillAmount: 3, refillPeriodMs: 7_000 }),
  Limit.concurrent('slots', 3),
];
const instants: fc.Arbitrary<Instant[]> = fc.array(
  fc.record({
    pauseMs: fc.constantFrom(0, 1, 900, 5_000, 9_000),
    released: fc.nat(3),
    asks: fc.array(
      fc.record({ rpm: fc.nat(9), slots: fc.nat(4), leaseTtlMs: fc.integer({ min: 5_000, max: 20_000 }) }),
      { minLength: 1, maxLength: 6 },
    ),
  }),
  { minLength: 3, maxLength: 6 },
);

function summaryOf(decision: Decision): unknown {
  const limits = decision.statuses.map(({ limit, available, exceeded, retryAfterMs }) => [
    limit.name,
    available,
    exceeded,
    retryAfterMs,
  ]);
  if (decision.granted) return limits;
  // An ask above the capacity is denied without a request, so its statuses may differ.
  const { reason, retryAfterMs } = decision;
  return reason === 'impossible' ? [reason] : [reason, retryAfterMs, limits];
}

describe.skipIf(ENGINE.missing)(`asks that share a write on DynamoDB${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  /** Takes and releases the mutex repeatedly, and asks again after each refusal. */
  const work = async (limiter: RateLimiter, refusals: Denied[]): Promise<void> => {
    for (let turn = 0; turn < TURNS_PER_WORKER;) {
      const decision = await limiter.tryAcquire(MUTEX);
      if (decision.granted) {
        turn += 1;
        await decision.lease.release();
      } else refusals.push(decision);
    }
  };

  test('a mutex that five workers of one process share never denies one of them as impossible', async () => {
    const space = await world.space();
    const limiter = await space.open({ limits: [Limit.concurrent('mutex', 1)] });
    const refusals: Denied[] = [];
    await Promise.all(Array.from({ length: WORKERS }, async () => work(limiter, refusals)));
    expect(refusals.length).toBeGreaterThan(WORKERS * TURNS_PER_WORKER);
    expect(refusals.filter(({ reason }) => reason !== 'exhausted')).toEqual([]);
    expect(new Set(refusals.map(({ retryAfterMs }) => retryAfterMs))).toEqual(new Set([60_000]));
  });

  test('random groups get the answers that memory gives to the same asks one after another', async () => {
    const space = await world.space();
    const options = { limits: LIMITS, denyCacheMs: 0, onExpiry: 'refund', clock: space.clock } as const;
    const [limiter, reference] = [await space.open(options), await RateLimiter.open(memory(), options)];
    let entities = 0;
    const seen = new Set<string>();
    const act = fc.asyncProperty(instants, async (played) => {
      const bucket = { entityId: `user-${(entities += 1)}`, resource: 'gpt-4' };
      const held: (readonly [Lease, Lease])[] = [];
      for (const { pauseMs, released, asks } of played) {
        await space.clock.advance(pauseMs);
        const [inStore, inMemory] = held.splice(released, 1)[0] ?? [];
        await inMemory?.release();
        const expected: Decision[] = [];
        for (const { leaseTtlMs, ...consume } of asks) {
          expected.push(await reference.tryAcquire({ ...bucket, consume, leaseTtlMs }));
        }
        const releasing = inStore?.release();
        // The release is sent first, because in one write asks are judged before refunds.
        await setImmediate();
        const asking = asks.map(async ({ leaseTtlMs, ...consume }) =>
          limiter.tryAcquire({ ...bucket, consume, leaseTtlMs }),
        );
        await releasing;
        const answers = await Promise.all(asking);
        expect(answers.map(summaryOf)).toEqual(expected.map(summaryOf));
        for (const [at, answer] of answers.entries()) {
          const other = expected[at];
          seen.add(answer.granted ? 'granted' : answer.reason);
          if (answer.granted && other?.granted === true) held.push([answer.lease, other.lease]);
        }
      }
    });
    await fc.assert(act, { numRuns: 25 });
    expect(seen).toEqual(new Set(['granted', 'exhausted', 'impossible']));
    await reference.close();
  });
});
