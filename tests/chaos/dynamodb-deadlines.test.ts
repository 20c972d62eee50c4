import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isHeadgateError } from '../../src/core/errors.js';
import { Limit } from '../../src/core/limit.js';
import type { Decision } from '../../src/limiter/acquire/decision.js';
import { Random } from '../../src/testing/conformance/kit/random.js';
import { fault, findEngine } from '../../src/testing/dynamodb/index.js';
import { LIMIT, RESOURCE } from '../support/dynamodb/workloads/bucket-work.js';
import { Arena, sumShards } from '../support/dynamodb/workloads/arena.js';
import { FaultyClient } from '../support/dynamodb/faulty-client.js';
import { TokenLedger } from '../support/models/token-ledger.js';

const found = findEngine('dynoxide');
const why = found.status === 'unavailable' ? ` (skipped: ${found.reason})` : '';

const START_MS = 1_800_000_000_000;
const CALL_MS = 300;
const ACQUIRE_MS = 450;
/** Longer than any call, so that a held request lands after its caller timed out. */
const HELD_MS = 600;
const ROUNDS = 25;
const AT_ONCE = 12;

/** Practically no refill during the test, so that a request that lands late finds the same balance. */
const POT = Limit.custom(LIMIT, { capacity: 100_000, refillAmount: 1, refillPeriodMs: 86_400_000 });

/** How each policy decides during an outage. */
const POLICIES = {
  block: { decidedBy: ['store', 'deny-cache'], rejects: true },
  allow: { decidedBy: ['store', 'deny-cache', 'open'], rejects: false },
  local: { decidedBy: ['store', 'deny-cache', 'fallback'], rejects: false },
} as const;

type Policy = keyof typeof POLICIES;

const SEEDS = [1, Math.floor(Math.random() * 2 ** 31)];

describe.skipIf(found.status === 'unavailable').concurrent(`clients with short timeouts${why}`, () => {
  let arena: Arena;

  beforeAll(async () => {
    arena = await Arena.start();
  });
  afterAll(async () => arena?.[Symbol.asyncDispose]());

  /** All faults of a storm, and requests and answers that arrive after their caller timed out. */
  const startClient = async (seed: number, namespace: string, onUnavailable: Policy, now: () => number) => {
    const client = await FaultyClient.make(arena, seed, {
      namespace,
      onUnavailable,
      limits: [POT],
      clock: { now },
      timeouts: { callMs: CALL_MS, acquireMs: ACQUIRE_MS },
      configCacheMs: 2_500,
      onError: () => {},
    });
    client.storm();
    client.proxy.inject(fault.holdRequest(HELD_MS), { probability: 0.03 });
    client.proxy.inject(fault.holdAnswer(HELD_MS), { probability: 0.03 });
    return client;
  };

  const policies = Object.keys(POLICIES) as Policy[];
  const cases = SEEDS.flatMap((seed) => policies.map((policy) => ({ seed, policy })));

  test.each(cases)(
    'every call ends within its timeout and follows the policy $policy (seed $seed)',
    { timeout: 120_000 },
    async ({ seed, policy }) => {
      const startedMs = performance.now();
      const { decidedBy, rejects } = POLICIES[policy];
      const namespace = await arena.namespace(START_MS, async () => {});
      let nowMs = START_MS;
      const random = new Random(seed);
      const ledger = new TokenLedger(POT);
      const counts = { granted: 0, degraded: 0, rejected: 0, refunds: 0, unsure: 0 };
      const wrong: unknown[] = [];
      let longestMs = 0;
      const client = await startClient(seed, namespace.name, policy, () => nowMs);

      const timed = async <T>(work: () => Promise<T>): Promise<T | null> => {
        const fromMs = performance.now();
        try {
          return await work();
        } catch (error) {
          if (!isHeadgateError(error, 'backend.unavailable')) wrong.push(error);
          return null;
        } finally {
          longestMs = Math.max(longestMs, performance.now() - fromMs);
        }
      };

      const giveBack = async ({ lease }: Extract<Decision, { granted: true }>, amount: number): Promise<void> => {
        // A client that gets no answer repeats its call.
        let tries = 0;
        for (let done = false; !done && tries < 3; tries++)
          done = (await timed(async () => lease.rollback().then(() => true))) === true;
        counts[tries === 1 ? 'refunds' : 'unsure'] += 1;
        ledger.refund(nowMs, nowMs, amount * 1_000, tries === 1);
      };

      const act = async (): Promise<void> => {
        // Every fourth bucket is new, because a first write can fail too.
        const isNew = random.whole(1, 4) === 1;
        const entityId = isNew ? `new-${random.whole(1, 2 ** 30)}` : 'pot';
        const amount = random.whole(1, 5);
        const returns = random.whole(1, 3) === 1;
        const ask = { entityId, resource: RESOURCE, consume: { [LIMIT]: amount } };
        const decision = await timed(async () => client.limiter.tryAcquire(ask));
        if (decision === null) {
          counts.rejected += 1;
          if (!rejects) wrong.push('rejected');
          return;
        }
        if (!(decidedBy as readonly string[]).includes(decision.decidedBy)) wrong.push(decision.decidedBy);
        if (!decision.granted) return;
        const byStore = decision.decidedBy === 'store';
        counts[byStore ? 'granted' : 'degraded'] += 1;
        if (byStore && !isNew) ledger.take(nowMs, amount * 1_000);
        if (byStore && !isNew && returns) await giveBack(decision, amount);
      };

      // The breaker lets one call through each second.
      for (; nowMs < START_MS + ROUNDS * 1_000; nowMs += 1_000) await Promise.all(Array.from({ length: AT_ONCE }, act));
      // Held requests land now.
      client.proxy.heal();
      expect(await client.limiter.ping({ timeoutMs: 10_000 })).toMatchObject({ ok: true });
      const requests = client.proxy.requests.count();
      await client[Symbol.asyncDispose]();
      const sums = sumShards(await arena.shards(namespace, 'pot'), nowMs);
      expect(sums.consumed).toBeGreaterThanOrEqual(ledger.leastNet);
      expect(wrong).toEqual([]);
      expect(client.late).toEqual([]);
      const figures = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
      const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
      const longest = `longest ${longestMs.toFixed(0)} ms`;
      console.log(`deadlines, ${policy}: ${figures.join(', ')}, ${longest}; ${requests} requests, ${seconds} s`);
      expect(counts[rejects ? 'rejected' : 'degraded']).toBeGreaterThan(0);
    },
  );
});
