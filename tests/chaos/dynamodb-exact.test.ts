import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { Random } from '../../src/testing/conformance/kit/random.js';
import { findEngine } from '../../src/testing/dynamodb/index.js';
import { LIMIT, RESOURCE } from '../support/dynamodb/workloads/bucket-work.js';
import { Demand } from '../support/models/demand.js';
import { Arena, type Namespace, sumShards } from '../support/dynamodb/workloads/arena.js';
import { TakerPool } from './taker-pool.js';
import { TokenLedger } from '../support/models/token-ledger.js';

const found = findEngine('dynoxide');
const why = found.status === 'unavailable' ? ` (skipped: ${found.reason})` : '';

const START_MS = 1_800_000_000_000;
const TICK_MS = 1_000;
/** The buckets are empty by then: a full shard loses its refill until the processes know of it. */
const SPLIT_MS = START_MS + 4 * TICK_MS;
/** The refill is rounded for each shard: together less than one token more. */
const LESS_THAN_A_TOKEN = 999;
/** Primes, so that the refill of a window is rarely a whole number of tokens. */
const POT = Limit.custom(LIMIT, { capacity: 400, refillAmount: 97, refillPeriodMs: 991 });
const SMALL = [1, 2, 3, 5, 8];
/** Some asks are larger than the share of one of eight shards. */
const SMALL_AND_LARGE = [...Array.from({ length: 5 }, () => SMALL).flat(), 60];

/** The same demand in each run, and a short random demand, which is too short to measure waste. */
const RUNS = [
  { seed: 1, seconds: 60 },
  { seed: Math.floor(Math.random() * 2 ** 31), seconds: 10 },
];
const LONG = 60;

describe.skipIf(found.status === 'unavailable')(`eight processes on one DynamoDB table, in fake time${why}`, () => {
  let arena: Arena;
  let pool: TakerPool;
  let requests = 0;

  beforeAll(async () => {
    arena = await Arena.start();
    pool = await TakerPool.start(8);
  });
  afterAll(async () => {
    await pool?.stop();
    await arena?.[Symbol.asyncDispose]();
  });

  const potOf = (limits: readonly Limit[]) =>
    arena.namespace(START_MS, (limiter) => limiter.config.setResource(RESOURCE, { limits }));

  /** All processes start with empty caches. A bucket with ten writes a second spreads its asks over its shards. */
  const open = async ({ name: namespace }: Namespace, splitAbove = Number.MAX_SAFE_INTEGER): Promise<void> => {
    const { endpoint, region } = arena.engine;
    const { tableName: table } = arena;
    const pressure = { paceAbove: 40, splitAbove };
    await pool.tell(() => ({ kind: 'open', endpoint, region, table, namespace, pressure, nowMs: START_MS }));
    requests = 0;
  };

  const tick = async (demand: Demand, nowMs: number, corrects = true): Promise<void> => {
    const told = Array.from({ length: pool.size }, (_, taker) =>
      corrects ? demand.operationsOf(taker) : demand.takes(),
    );
    const news = await pool.tell((taker) => ({ kind: 'tick', nowMs, operations: told[taker]! }));
    for (const [taker, { outcomes, reported, requests: sent }] of news.entries()) {
      requests += sent;
      demand.book(nowMs, taker, told[taker]!, outcomes);
      expect([...reported, ...outcomes.filter(({ kind }) => kind === 'failed')]).toEqual([]);
    }
  };

  const run = async (demand: Demand, fromMs: number, endMs: number): Promise<void> => {
    for (let nowMs = fromMs; nowMs <= endMs; nowMs += TICK_MS) await tick(demand, nowMs);
    await tick(demand, endMs, false);
  };

  const isExact = async (namespace: Namespace, entityId: string, ledger: TokenLedger, nowMs: number) => {
    const sums = sumShards(await arena.shards(namespace, entityId), nowMs);
    expect(ledger.overdrawn(sums.shards === 1 ? 0 : LESS_THAN_A_TOKEN), entityId).toBeNull();
    expect([sums.consumed, sums.acquires], entityId).toEqual([ledger.leastNet, ledger.grants]);
    expect(sums.tokens, entityId).toBeLessThanOrEqual(ledger.mostTokens(nowMs) + LESS_THAN_A_TOKEN);
    return sums;
  };

  const show = (what: string, startedMs: number, { counts }: Demand, parts: readonly string[]): void => {
    const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
    const asked = `${counts.granted} of ${counts.asks} asks, ${counts.refunds} refunds, ${counts.debits} debits`;
    console.log(`${what}: ${parts.join(', ')}; ${asked}; ${requests} requests, ${seconds} s`);
  };

  const percent = (part: number): string => `${(part * 100).toFixed(2)} %`;

  describe.each(RUNS)('$seconds s of demand (seed $seed)', ({ seed, seconds }) => {
    const endMs = START_MS + seconds * 1_000;

    test(
      'eight processes are never granted too much from 1, 2 or 8 shards, and waste almost nothing',
      { timeout: 240_000 },
      async () => {
        const startedMs = performance.now();
        const namespace = await potOf([POT]);
        const counts = [1, 2, 8];
        const ledgers = new Map(counts.map((count) => [`of-${count}`, new TokenLedger(POT)]));
        const ledgersOf = (id: string) => [ledgers.get(id)!];
        const entities = [...ledgers.keys()];
        const demand = new Demand(new Random(seed), { entities, amounts: SMALL_AND_LARGE, asks: 15, ledgersOf });
        await open(namespace);
        for (let nowMs = START_MS; nowMs <= SPLIT_MS; nowMs += TICK_MS) await tick(demand, nowMs);
        for (const count of counts) await arena.splitInto(count, namespace, `of-${count}`, SPLIT_MS);
        await run(demand, SPLIT_MS + TICK_MS, endMs);
        const used: string[] = [];
        for (const [entityId, ledger] of ledgers) {
          const { shards } = await isExact(namespace, entityId, ledger, endMs);
          const part = ledger.leastNet / ledger.allowed(START_MS, endMs);
          used.push(`${percent(part)} of ${shards} shards`);
          if (seconds >= LONG) expect(part, entityId).toBeGreaterThan(0.99);
        }
        show('exact', startedMs, demand, used);
      },
    );

    test('eight processes are never granted too much while shards split and merge', { timeout: 240_000 }, async () => {
      const startedMs = performance.now();
      const namespace = await potOf([POT]);
      const ledger = new TokenLedger(POT);
      const random = new Random(seed);
      const demand = new Demand(random, { entities: ['pot'], amounts: SMALL, asks: 9, ledgersOf: () => [ledger] });
      // The processes split busy shards, and this test merges them again while the processes take from them.
      await open(namespace, 4);
      let merges = 0;
      let most = 0;
      for (let nowMs = START_MS; nowMs <= endMs; nowMs += TICK_MS) {
        // A merge fails while a shard of the pair is written, so it is tried until one succeeds or the tick ends.
        let mayMerge = random.whole(1, 4) === 1;
        const ticking = tick(demand, nowMs).finally(() => (mayMerge = false));
        while (mayMerge) {
          if (!(await arena.mergeOne(namespace, 'pot', nowMs, random))) continue;
          merges += 1;
          mayMerge = false;
        }
        await ticking;
        const { length: shards } = await arena.shards(namespace, 'pot');
        most = Math.max(most, shards);
        // On a busy machine the processes may not split, or no merge may succeed. After half of the time, both are done
        // between ticks.
        if (merges > 0 || nowMs < (START_MS + endMs) / 2) continue;
        if (shards === 1) await arena.splitInto(2, namespace, 'pot', nowMs);
        else if (await arena.mergeOne(namespace, 'pot', nowMs, random)) merges += 1;
      }
      const sums = sumShards(await arena.shards(namespace, 'pot'), endMs);
      const part = ledger.leastNet / ledger.allowed(START_MS, endMs);
      const splits = sums.shards + merges - 1;
      show('splits and merges', startedMs, demand, [
        `${splits} splits, ${merges} merges`,
        percent(part),
        `${most} shards`,
      ]);
      await isExact(namespace, 'pot', ledger, endMs);
      expect([splits > 0, merges > 0]).toEqual([true, true]);
      if (seconds >= LONG) expect(part).toBeGreaterThan(0.99);
    });

    test(
      'eight processes are never granted too much at any of three levels that 50 children share',
      { timeout: 240_000 },
      async () => {
        const startedMs = performance.now();
        const limitOf = (perSecond: number, capacity: number) =>
          Limit.custom(LIMIT, { capacity, refillAmount: perSecond, refillPeriodMs: 997 });
        const [ofUser, ofTeam, ofOrg] = [limitOf(2, 8), limitOf(23, 50), limitOf(20, 40)];
        const users = Array.from({ length: 50 }, (_, at) => `user-${at}`);
        const namespace = await arena.namespace(START_MS, async ({ config, entities }) => {
          await config.setResource(RESOURCE, { limits: [ofUser] });
          await config.setEntity('team', RESOURCE, { limits: [ofTeam] });
          await config.setEntity('org', RESOURCE, { limits: [ofOrg] });
          await entities.create({ id: 'org' });
          await entities.create({ id: 'team', parentId: 'org', cascade: true });
          for (const id of users) await entities.create({ id, parentId: 'team', cascade: true });
        });
        const [team, org] = [new TokenLedger(ofTeam), new TokenLedger(ofOrg)];
        const own = new Map(users.map((id) => [id, new TokenLedger(ofUser)]));
        const ledgersOf = (id: string) => [own.get(id)!, team, org];
        const demand = new Demand(new Random(seed), { entities: users, amounts: [1, 2, 3, 5], asks: 2, ledgersOf });
        await open(namespace);
        await run(demand, START_MS, endMs);
        const part = org.leastNet / org.allowed(START_MS, endMs);
        show('cascade', startedMs, demand, [percent(part)]);
        expect(org.grants).toBeGreaterThan(0);
        for (const [id, ledger] of [['org', org], ['team', team], ...own] as const) {
          if (ledger.grants > 0) await isExact(namespace, id, ledger, endMs);
        }
        if (seconds >= LONG) expect(part).toBeGreaterThan(0.99);
      },
    );
  });
});
