import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { purgeNamespace } from '../../src/backends/dynamodb/stores/purge.js';
import { isHeadgateError } from '../../src/core/errors.js';
import { Limit } from '../../src/core/limit.js';
import type { LimiterOptions } from '../../src/limiter/options.js';
import { Random } from '../../src/testing/conformance/kit/random.js';
import { findEngine } from '../../src/testing/dynamodb/index.js';
import { BucketWorker, LIMIT, type Operation, RESOURCE } from '../support/dynamodb/workloads/bucket-work.js';
import { Demand } from '../support/models/demand.js';
import { Arena, type Namespace, sumShards } from '../support/dynamodb/workloads/arena.js';
import { FaultyClient } from '../support/dynamodb/faulty-client.js';
import { SLOTS, SlotWork } from '../support/dynamodb/workloads/slot-work.js';
import { TokenLedger } from '../support/models/token-ledger.js';

const found = findEngine('dynoxide');
const why = found.status === 'unavailable' ? ` (skipped: ${found.reason})` : '';

const START_MS = 1_800_000_000_000;
const TICK_MS = 500;
const CLIENTS = 4;
const CALL_MS = 30_000;
/** The refill is rounded for each shard: together less than one token more. */
const LESS_THAN_A_TOKEN = 999;

/** The same faults in each run, and random ones. */
const RANDOM = Math.floor(Math.random() * 2 ** 31);
const SEEDS = [1, RANDOM];

const limitOf = (perSecond: number, capacity: number) =>
  Limit.custom(LIMIT, { capacity, refillAmount: perSecond, refillPeriodMs: 997 });

/** Concurrent, because the tests wait for most of their time. */
describe.skipIf(found.status === 'unavailable').concurrent(`clients that lose a fifth of their requests${why}`, () => {
  let arena: Arena;

  beforeAll(async () => {
    arena = await Arena.start();
  });
  afterAll(async () => arena?.[Symbol.asyncDispose]());

  const startClients = async (
    { name: namespace }: Namespace,
    seed: number,
    now: () => number,
    more: LimiterOptions = {},
  ) => {
    const options = {
      ...more,
      namespace,
      clock: { now },
      // Long, so that no request lands after its caller timed out.
      timeouts: { callMs: CALL_MS, acquireMs: CALL_MS },
      configCacheMs: 3_000,
      onError: () => {},
    };
    return Promise.all(Array.from({ length: CLIENTS }, async (_, at) => FaultyClient.make(arena, seed + at, options)));
  };

  /** All clients run their operations concurrently, and the outcomes are booked in the ledgers. */
  const act = async (
    demand: Demand,
    workers: readonly BucketWorker[],
    nowMs: number,
    told: (client: number) => readonly Operation[],
  ): Promise<void> => {
    const work = async (worker: BucketWorker, client: number): Promise<void> => {
      const operations = told(client);
      demand.book(nowMs, client, operations, await worker.doAll(operations));
    };
    await Promise.all(workers.map(work));
  };

  /** Stops the clients, and returns how many requests they sent. */
  const stop = async (clients: readonly FaultyClient[]): Promise<number> => {
    expect(clients.flatMap(({ late }) => late)).toEqual([]);
    await Promise.all(clients.map(async (client) => client[Symbol.asyncDispose]()));
    return clients.reduce((sum, { proxy }) => sum + proxy.requests.count(), 0);
  };

  const show = (what: string, startedMs: number, counts: object, requests: number): void => {
    const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
    const figures = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
    console.log(`${what}: ${figures.join(', ')}; ${requests} requests, ${seconds} s`);
  };

  /** Repeats a purge that an outage interrupts until no records are left. */
  const untilAnswered = async (purge: () => Promise<number>): Promise<number> => {
    for (let round = 0; ; round++) {
      const left = await purge().catch((error: unknown) => {
        if (!isHeadgateError(error, 'backend.unavailable') || round > 20) throw error;
        return null;
      });
      if (left === 0) return left;
    }
  };

  const percent = (part: number): string => `${(part * 100).toFixed(1)} %`;

  test.each(SEEDS)(
    'clients that lose a fifth of their requests are granted no more than the limits allow (seed %i)',
    { timeout: 240_000 },
    async (seed) => {
      const startedMs = performance.now();
      const limits = { lone: limitOf(40, 100), user: limitOf(30, 60), team: limitOf(20, 80) };
      const namespace = await arena.namespace(START_MS, async ({ config, entities }) => {
        for (const [id, limit] of Object.entries(limits)) await config.setEntity(id, RESOURCE, { limits: [limit] });
        await entities.create({ id: 'team' });
        await entities.create({ id: 'user', parentId: 'team', cascade: true });
      });
      const [lone, user, team] = [limits.lone, limits.user, limits.team].map((limit) => new TokenLedger(limit));
      const demand = new Demand(new Random(seed), {
        entities: ['lone', 'user'],
        amounts: [1, 2, 3, 5],
        asks: 8,
        retries: 4,
        ledgersOf: (id) => (id === 'lone' ? [lone!] : [user!, team!]),
      });
      let nowMs = START_MS;
      const clients = await startClients(namespace, seed, () => nowMs);
      for (const client of clients) client.storm();
      const workers = clients.map(({ limiter }) => new BucketWorker(limiter));
      for (; nowMs < START_MS + 15_000; nowMs += TICK_MS) {
        await act(demand, workers, nowMs, (client) => demand.operationsOf(client));
      }
      demand.end();
      for (const [id, ledger] of Object.entries({ lone, user, team }) as [string, TokenLedger][]) {
        const sums = sumShards(await arena.shards(namespace, id), nowMs);
        expect(ledger.overdrawn(sums.shards === 1 ? 0 : LESS_THAN_A_TOKEN), id).toBeNull();
        expect(sums.tokens, id).toBeLessThanOrEqual(ledger.mostTokens(nowMs) + LESS_THAN_A_TOKEN);
        expect(sums.consumed, id).toBeGreaterThanOrEqual(ledger.leastNet);
        expect(sums.acquires, id).toBeGreaterThanOrEqual(ledger.grants);
      }
      expect(demand.untyped).toEqual([]);

      // The same faults during a purge. Most items of each batch stay unprocessed.
      const purging = { name: arena.tableName, transport: clients[0]!.transport, random: Math.random };
      const purged = await untilAnswered(async () => purgeNamespace(purging, namespace.id, CALL_MS));
      expect(purged).toBe(0);
      expect(await arena.shards(namespace, 'team')).toEqual([]);
      const used = [lone!, team!].map((ledger) => percent(ledger.leastNet / ledger.allowed(START_MS, nowMs)));
      show(`faults, ${used.join(' and ')} used`, startedMs, demand.counts, await stop(clients));
    },
  );

  test.each(SEEDS)(
    'clients that lose a fifth of their requests get each refund at most once (seed %i)',
    { timeout: 240_000 },
    async (seed) => {
      const startedMs = performance.now();
      const limit = limitOf(60, 200);
      const namespace = await arena.namespace(START_MS, ({ config }) =>
        config.setResource(RESOURCE, { limits: [limit] }),
      );
      const ledger = new TokenLedger(limit);
      const demand = new Demand(new Random(seed), {
        entities: ['pot'],
        amounts: [1, 2, 3, 5],
        asks: 6,
        retries: 4,
        withoutDebits: true,
        ledgersOf: () => [ledger],
      });
      let nowMs = START_MS;
      const clients = await startClients(namespace, seed, () => nowMs);
      const workers = clients.map(({ limiter }) => new BucketWorker(limiter));
      for (; nowMs < START_MS + 15_000; nowMs += TICK_MS) {
        // The takes have no faults, because a take that counts twice would hide a refund that counts twice.
        for (const { proxy } of clients) proxy.heal();
        await act(demand, workers, nowMs, () => demand.takes());
        for (const client of clients) client.storm();
        await act(demand, workers, nowMs, (client) => demand.correctionsOf(client));
      }
      demand.end();
      const sums = sumShards(await arena.shards(namespace, 'pot'), nowMs);
      expect(ledger.overdrawn(sums.shards === 1 ? 0 : LESS_THAN_A_TOKEN)).toBeNull();
      expect(sums.acquires).toBe(ledger.grants);
      expect(sums.consumed).toBeGreaterThanOrEqual(ledger.leastNet);
      expect(sums.consumed).toBeLessThanOrEqual(ledger.mostNet);
      expect(demand.untyped).toEqual([]);
      const unsure = `${(ledger.mostNet - ledger.leastNet) / 1_000} tokens unsure`;
      show(`refunds, ${unsure}`, startedMs, demand.counts, await stop(clients));
    },
  );

  const expiries = [
    { seed: 1, onExpiry: 'keep' },
    { seed: 2, onExpiry: 'refund' },
    { seed: RANDOM, onExpiry: 'refund' },
  ] as const;

  test.each(expiries)(
    'clients that lose a fifth of their requests never hold more slots than the capacity, and lose none: expiries $onExpiry (seed $seed)',
    { timeout: 240_000 },
    async ({ seed, onExpiry }) => {
      const startedMs = performance.now();
      const capacity = 12;
      const rate = limitOf(20, 100);
      const limits = [Limit.concurrent(SLOTS, capacity), rate];
      const namespace = await arena.namespace(START_MS, ({ config }) => config.setResource(RESOURCE, { limits }));
      let nowMs = START_MS;
      const clients = await startClients(namespace, seed, () => nowMs, { onExpiry });
      for (const client of clients) client.storm();
      const ledger = new TokenLedger(rate);
      const work = new SlotWork('pool', new Random(seed), ledger);
      for (; nowMs < START_MS + 20_000; nowMs += TICK_MS) {
        await Promise.all(clients.map(async ({ limiter }) => work.tick(limiter, nowMs, 2)));
        const shards = await arena.shards(namespace, 'pool');
        const { tokens, held } = sumShards(shards, nowMs, SLOTS);
        expect([tokens + held, tokens >= 0]).toEqual([capacity * 1_000, true]);
        const stored = shards.flatMap(({ holders }) => [...holders.keys()]);
        expect(stored).toEqual(expect.arrayContaining([...work.certain(nowMs)]));
      }
      for (const { proxy } of clients) proxy.heal();
      await work.end(nowMs);
      const sums = sumShards(await arena.shards(namespace, 'pool'), nowMs);
      expect(ledger.overdrawn(sums.shards === 1 ? 0 : LESS_THAN_A_TOKEN)).toBeNull();
      expect(sums.consumed).toBeGreaterThanOrEqual(ledger.leastNet);

      nowMs += 10_000;
      const everything = { entityId: 'pool', resource: RESOURCE, consume: { [SLOTS]: capacity } };
      expect(await clients[0]!.limiter.tryAcquire(everything)).toMatchObject({ granted: true });
      expect(work.most).toBeLessThanOrEqual(capacity);
      expect([work.untyped, work.counts.lost]).toEqual([[], 0]);
      show(`slots, at most ${work.most} of ${capacity} at once`, startedMs, work.counts, await stop(clients));
    },
  );
});
