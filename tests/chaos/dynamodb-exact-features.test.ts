import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { Random } from '../../src/testing/conformance/kit/random.js';
import { findEngine } from '../../src/testing/dynamodb/index.js';
import { Arena, type Namespace, sumShards } from '../support/dynamodb/workloads/arena.js';
import { LIMIT, RESOURCE } from '../support/dynamodb/workloads/bucket-work.js';
import { Demand } from '../support/models/demand.js';
import { TokenLedger } from '../support/models/token-ledger.js';
import { TakerPool } from './taker-pool.js';

const found = findEngine('dynoxide');
const why = found.status === 'unavailable' ? ` (skipped: ${found.reason})` : '';

const START_MS = 1_800_000_000_000;
const TICK_MS = 1_000;
/** The buckets are empty by then: a full shard loses its refill until the processes know of it. */
const SPLIT_MS = START_MS + 4 * TICK_MS;
const END_MS = START_MS + 30 * TICK_MS;
const PROCESSES = 8;
/** The refill and the reserve are rounded for each shard: together less than one token more. */
const LESS_THAN_A_TOKEN = 999;
const AMOUNTS = [1, 2, 3, 5, 8];
/** Primes, so that the refill of a window is rarely a whole number of tokens: 98 tokens a second. */
const RULE = { capacity: 400, refillAmount: 97, refillPeriodMs: 991 };
const POT = Limit.custom(LIMIT, RULE);
const RESERVE = 0.3;
const RESERVED = Limit.custom(LIMIT, { ...RULE, reserve: { batch: RESERVE } });
const RESERVE_MILLI = POT.capacityMilli * RESERVE;
/**
 * What a window that ends with a batch take may give. After the take, the reserve of its shard is still there. Production
 * may have taken the reserves of the other shards.
 */
const aboveReserve = (shards: number): TokenLedger =>
  new TokenLedger(Limit.custom(LIMIT, { ...RULE, capacity: RULE.capacity * (1 - RESERVE / shards) }));
/** The last is more than the bucket ever has. */
const CUT_AMOUNTS = [1, 7, 30, 500];
/** The part of the bound that eight processes are granted at least. */
const LEAST = 0.99;

/** The demand of some of the processes. */
interface Part {
  readonly demand: Demand;
  readonly isOf: (taker: number) => boolean;
}

describe.skipIf(found.status === 'unavailable')(`eight processes with priorities, pauses and shadows${why}`, () => {
  let arena: Arena;
  let pool: TakerPool;

  beforeAll(async () => {
    arena = await Arena.start();
    pool = await TakerPool.start(PROCESSES);
  });
  afterAll(async () => {
    await pool?.stop();
    await arena?.[Symbol.asyncDispose]();
  });

  const open = async ({ name: namespace }: Namespace): Promise<void> => {
    const { endpoint, region } = arena.engine;
    const pressure = { paceAbove: 40, splitAbove: Number.MAX_SAFE_INTEGER };
    const { tableName: table } = arena;
    await pool.tell(() => ({ kind: 'open', endpoint, region, table, namespace, pressure, nowMs: START_MS }));
  };

  const tick = async (parts: readonly Part[], nowMs: number, corrects = true): Promise<void> => {
    const told = Array.from({ length: PROCESSES }, (_, taker) => {
      const demand = parts.find(({ isOf }) => isOf(taker))?.demand;
      if (demand === undefined) return [];
      return corrects ? demand.operationsOf(taker) : demand.takes();
    });
    const news = await pool.tell((taker) => ({ kind: 'tick', nowMs, operations: told[taker]! }));
    for (const [taker, { outcomes, reported }] of news.entries()) {
      const demand = parts.find(({ isOf }) => isOf(taker))?.demand;
      demand?.book(nowMs, taker, told[taker]!, outcomes);
      expect(demand?.wrongAmounts ?? []).toEqual([]);
      expect([...reported, ...outcomes.filter(({ kind }) => kind === 'failed')]).toEqual([]);
    }
  };

  /** Splits the buckets after some ticks, and ends with a tick without corrections. */
  const run = async (parts: readonly Part[], namespace: Namespace, buckets: Readonly<Record<string, number>>) => {
    await open(namespace);
    for (let nowMs = START_MS; nowMs <= SPLIT_MS; nowMs += TICK_MS) await tick(parts, nowMs);
    for (const [entityId, shards] of Object.entries(buckets)) {
      await arena.splitInto(shards, namespace, entityId, SPLIT_MS);
    }
    for (let nowMs = SPLIT_MS + TICK_MS; nowMs <= END_MS; nowMs += TICK_MS) await tick(parts, nowMs);
    await tick(parts, END_MS, false);
  };

  const everyone = (): boolean => true;
  const percent = (part: number): string => `${(part * 100).toFixed(2)} %`;

  /** Below the rate, a tick has at most 96 tokens of production, which are always there: batch leaves 120, and 98 return. */
  const LOADS = [
    ['below the rate', 3, false],
    ['at twice the rate', 15, true],
  ] as const;

  describe.each([1, 2])('priorities in a bucket of %i shards', (shards) => {
    test.each(LOADS)(
      'production %s loses no more to batch work at three times the capacity than batch was granted, and no process of a class starves',
      async (_, asks, loses) => {
        const play = async (withBatch: boolean) => {
          const namespace = await arena.namespace(START_MS, (limiter) =>
            limiter.config.setResource(RESOURCE, { limits: [RESERVED] }),
          );
          const [all, production, batch] = [new TokenLedger(POT), new TokenLedger(POT), new TokenLedger(POT)];
          const above = aboveReserve(shards);
          const common = { entities: ['pot'], amounts: AMOUNTS, withoutDebits: true };
          const urgent = new Demand(new Random(1), {
            ...common,
            asks,
            ledgersOf: () => [all, production],
            othersOf: () => [above],
          });
          const patient = new Demand(new Random(2), {
            ...common,
            asks: 20,
            priority: 'batch',
            ledgersOf: () => [all, batch, above],
          });
          const parts: Part[] = [{ demand: urgent, isOf: (taker) => taker < PROCESSES / 2 }];
          if (withBatch) parts.push({ demand: patient, isOf: (taker) => taker >= PROCESSES / 2 });
          await run(parts, namespace, { pot: shards });
          const slack = shards === 1 ? 0 : LESS_THAN_A_TOKEN;
          expect([all.overdrawn(slack), above.overdrawn(slack)]).toEqual([null, null]);
          const sums = sumShards(await arena.shards(namespace, 'pot'), END_MS);
          expect([sums.consumed, sums.acquires]).toEqual([all.leastNet, all.grants]);
          for (const { demand } of parts) {
            // Batch beside too much production gets what is above the reserve at the start, and nothing more.
            if (loses && demand === patient) continue;
            const grants = [...demand.grantsOf.values()];
            expect(grants).toHaveLength(PROCESSES / 2);
            expect(Math.min(...grants)).toBeGreaterThan(demand.counts.granted / (PROCESSES / 2) / 4);
          }
          return { urgent, all: all.leastNet, production: production.leastNet, batch: batch.leastNet };
        };
        const [alone, beside] = [await play(false), await play(true)];
        const bound = new TokenLedger(POT).allowed(START_MS, END_MS);
        const lost = alone.production - beside.production;
        const parts = [alone.production, beside.production, beside.batch].map((part) => percent(part / bound));
        console.log(`${shards} shards, production ${parts[0]} alone, ${parts[1]} beside batch with ${parts[2]}`);
        expect(lost).toBeLessThanOrEqual(beside.batch + (1 - LEAST) * bound);
        // Only asks without a class can take the reserve, and there are enough of them only above the rate.
        expect(beside.all).toBeGreaterThan(LEAST * (loses ? bound : bound - RESERVE_MILLI));
        if (loses) expect(alone.production).toBeGreaterThan(LEAST * bound);
        else if (shards === 1) {
          expect([alone.urgent.counts.denied, beside.urgent.counts.denied, lost]).toEqual([0, 0, 0]);
        }
      },
    );
  });

  test('eight processes are never granted too much while their bucket is paused and resumed, and nothing during a pause', async () => {
    const namespace = await arena.namespace(START_MS, (limiter) =>
      limiter.config.setResource(RESOURCE, { limits: [RESERVED] }),
    );
    let nowMs = START_MS;
    await using operator = await RateLimiter.open(arena.backend(), {
      namespace: namespace.name,
      clock: { now: () => nowMs },
    });
    const ledger = new TokenLedger(POT);
    const common = { entities: ['pot'], amounts: AMOUNTS, asks: 15, ledgersOf: () => [ledger] };
    const parts: Part[] = [
      { demand: new Demand(new Random(3), common), isOf: (taker) => taker < PROCESSES / 2 },
      { demand: new Demand(new Random(4), { ...common, priority: 'batch' }), isOf: (taker) => taker >= PROCESSES / 2 },
    ];
    await open(namespace);
    let pauses = 0;
    const target = { entityId: 'pot', resource: RESOURCE };
    for (; nowMs <= END_MS; nowMs += TICK_MS) {
      const granted = ledger.grants;
      // One tick of ten. The processes may use a pause that they know for `denyCacheMs`, which is less than two ticks.
      const isPaused = (nowMs - START_MS) % (10 * TICK_MS) === 5 * TICK_MS;
      if (isPaused) await operator.pause({ ...target, forMs: 3_600_000, reason: 'vendor' });
      await tick(parts, nowMs);
      if (!isPaused) continue;
      pauses += 1;
      expect(ledger.grants).toBe(granted);
      await operator.resume(target);
    }
    await tick(parts, END_MS, false);
    const part = ledger.leastNet / ledger.allowed(START_MS, END_MS);
    console.log(`${pauses} pauses: ${percent(part)} of the bound`);
    expect(ledger.overdrawn()).toBeNull();
    const sums = sumShards(await arena.shards(namespace, 'pot'), END_MS);
    expect([pauses, sums.consumed, sums.acquires]).toEqual([3, ledger.leastNet, ledger.grants]);
    expect(part).toBeGreaterThan(LEAST);
  });

  test.each([1, 2])(
    'eight processes, some of which take at most what there is, are never granted too much from %i shards, and no lease takes more than it asked',
    async (shards) => {
      const namespace = await arena.namespace(START_MS, (limiter) =>
        limiter.config.setResource(RESOURCE, { limits: [RESERVED] }),
      );
      const [all, above] = [new TokenLedger(POT), aboveReserve(shards)];
      const common = { entities: ['pot'], asks: 4, withoutDebits: true };
      const urgent = { ...common, ledgersOf: () => [all], othersOf: () => [above] };
      const batch = { ...common, priority: 'batch', ledgersOf: () => [all, above] };
      const cut = { amounts: CUT_AMOUNTS, atMost: true } as const;
      const parts: Part[] = [
        { demand: new Demand(new Random(6), { ...urgent, amounts: AMOUNTS }), isOf: (taker) => taker < 2 },
        { demand: new Demand(new Random(7), { ...urgent, ...cut }), isOf: (taker) => taker === 2 || taker === 3 },
        { demand: new Demand(new Random(8), { ...batch, amounts: AMOUNTS }), isOf: (taker) => taker === 4 },
        { demand: new Demand(new Random(9), { ...batch, ...cut }), isOf: (taker) => taker > 4 },
      ];
      await run(parts, namespace, { pot: shards });
      const slack = shards === 1 ? 0 : LESS_THAN_A_TOKEN;
      expect([all.overdrawn(slack), above.overdrawn(slack)]).toEqual([null, null]);
      const sums = sumShards(await arena.shards(namespace, 'pot'), END_MS);
      expect([sums.consumed, sums.acquires]).toEqual([all.leastNet, all.grants]);
      expect(parts.map(({ demand }) => demand.counts.cut > 0)).toEqual([false, true, false, true]);
      const part = all.leastNet / all.allowed(START_MS, END_MS);
      console.log(`${shards} shards with asks that are cut: ${percent(part)} of the bound`);
      expect(part).toBeGreaterThan(LEAST);
    },
  );

  test.each([1, 2])(
    'shadow limits in %i shards grant every ask of eight processes, and give no more than they have',
    async (shards) => {
      const namespace = await arena.namespace(START_MS, async ({ config, entities }) => {
        await config.setResource(RESOURCE, { limits: [POT] });
        await config.setEntity('shadow', RESOURCE, { limits: [Limit.custom(LIMIT, { ...RULE, shadow: true })] });
        await entities.create({ id: 'bypassed', bypass: true });
      });
      const ledgers = new Map(['shadow', 'bypassed'].map((id) => [id, new TokenLedger(POT)]));
      const demand = new Demand(new Random(5), {
        entities: [...ledgers.keys()],
        amounts: AMOUNTS,
        asks: 12,
        ledgersOf: (id) => [ledgers.get(id)!],
      });
      await run([{ demand, isOf: everyone }], namespace, { shadow: shards, bypassed: shards });
      expect([demand.counts.granted, demand.counts.exceeded > 0]).toEqual([demand.counts.asks, true]);
      for (const [entityId, ledger] of ledgers) {
        const sums = sumShards(await arena.shards(namespace, entityId), END_MS);
        expect(ledger.overdrawn(shards === 1 ? 0 : LESS_THAN_A_TOKEN), entityId).toBeNull();
        expect(sums.tokens, entityId).toBeLessThanOrEqual(ledger.mostTokens(END_MS) + LESS_THAN_A_TOKEN);
        const part = ledger.leastNet / ledger.allowed(START_MS, END_MS);
        const left = sums.tokens / ledger.allowed(START_MS, END_MS);
        console.log(`${entityId} of ${shards} shards: ${percent(part)} of the bound taken, ${percent(left)} left`);
        expect(part, entityId).toBeGreaterThan(LEAST);
      }
    },
  );
});
