import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { Random } from '../../src/testing/conformance/random.js';
import { findEngine } from '../../src/testing/dynamodb/index.js';
import { BucketWorker, LIMIT, RESOURCE } from '../support/bucket-work.js';
import { Demand } from '../support/demand.js';
import { Arena, type Namespace, sumShards } from '../support/dynamodb-arena.js';
import { FaultyClient } from '../support/faulty-client.js';
import { SLOTS, SlotWork } from '../support/slot-work.js';
import { TokenLedger } from '../support/token-ledger.js';

const found = findEngine('dynoxide');
const why = found.status === 'unavailable' ? ` (skipped: ${found.reason})` : '';

const START_MS = 1_800_000_000_000;
const TICK_MS = 500;
const CLIENTS = 4;
const LESS_THAN_A_TOKEN = 999;

/** The same faults each run, and some that were never there before. */
const SEEDS = [1, 2, Math.floor(Math.random() * 2 ** 31)];

describe.skipIf(found.status === 'unavailable')(`clients that lose a fifth of their requests${why}`, () => {
  let arena: Arena;

  beforeAll(async () => {
    arena = await Arena.start();
  });
  afterAll(async () => arena?.[Symbol.asyncDispose]());

  const startClients = async ({ name: namespace }: Namespace, seed: number, now: () => number) => {
    const reported: unknown[] = [];
    const options = {
      namespace,
      clock: { now },
      // Long, so that nothing lands after its caller has gone.
      timeouts: { callMs: 20_000, acquireMs: 20_000 },
      configCacheMs: 3_000,
      onError: (error: unknown) => void reported.push(error),
    };
    const all = await Promise.all(
      Array.from({ length: CLIENTS }, async (_, at) => FaultyClient.make(arena, seed + at, options)),
    );
    for (const client of all) client.storm();
    return { all, reported };
  };

  const stop = async (clients: readonly FaultyClient[]): Promise<number> => {
    expect(clients.flatMap(({ late }) => late)).toEqual([]);
    await Promise.all(clients.map(async (client) => client[Symbol.asyncDispose]()));
    return clients.reduce((sum, { proxy }) => sum + proxy.requests.count(), 0);
  };

  const show = (what: string, startedMs: number, requests: number, words: string): void => {
    const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
    console.log(`${what}: ${words}; ${requests} requests, ${seconds} s`);
  };

  test.each(SEEDS)('take no more tokens than there are (seed %i)', { timeout: 120_000 }, async (seed) => {
    const startedMs = performance.now();
    const limitOf = (perSecond: number, capacity: number) =>
      Limit.custom(LIMIT, { capacity, refillAmount: perSecond, refillPeriodMs: 997 });
    const limits = { lone: limitOf(40, 100), user: limitOf(30, 60), team: limitOf(20, 80) };
    const namespace = await arena.namespace(START_MS, async ({ config, entities }) => {
      for (const [id, limit] of Object.entries(limits)) await config.setEntity(id, RESOURCE, { limits: [limit] });
      await entities.create({ id: 'team' });
      await entities.create({ id: 'user', parentId: 'team', cascade: true });
    });
    const ledgers = {
      lone: new TokenLedger(limits.lone),
      user: new TokenLedger(limits.user),
      team: new TokenLedger(limits.team),
    };
    const demand = new Demand(new Random(seed), {
      entities: ['lone', 'user'],
      amounts: [1, 2, 3, 5],
      asks: 6,
      retries: 4,
      ledgersOf: (id) => (id === 'lone' ? [ledgers.lone] : [ledgers.user, ledgers.team]),
    });
    let nowMs = START_MS;
    const { all, reported } = await startClients(namespace, seed, () => nowMs);
    const workers = all.map(({ limiter }) => new BucketWorker(limiter));
    for (; nowMs < START_MS + 30_000; nowMs += TICK_MS) {
      await Promise.all(
        workers.map(async (worker, at) => {
          const operations = demand.operationsOf(at);
          demand.book(nowMs, at, operations, await worker.doAll(operations));
        }),
      );
    }
    demand.end();
    const requests = await stop(all);
    const { counts } = demand;
    const words: string[] = [];
    for (const [id, ledger] of Object.entries(ledgers)) {
      const sums = sumShards(await arena.shards(namespace, id), nowMs);
      const allowed = ledger.allowed(START_MS, nowMs);
      words.push(`${id} ${((ledger.leastNet / allowed) * 100).toFixed(1)} %`);
      expect(ledger.overdrawn(sums.shards === 1 ? 0 : LESS_THAN_A_TOKEN), id).toBeNull();
      expect(sums.tokens, id).toBeLessThanOrEqual(ledger.mostTokens(nowMs) + LESS_THAN_A_TOKEN);
      expect(sums.consumed, id).toBeGreaterThanOrEqual(ledger.leastNet);
      expect(sums.acquires, id).toBeGreaterThanOrEqual(ledger.grants);
    }
    show('faults', startedMs, requests, `${JSON.stringify(counts)}, ${words.join(', ')}, ${reported.length} reported`);
    expect(demand.untyped).toEqual([]);
  });

  test.each(SEEDS)('hold no more slots than there are, and lose none (seed %i)', { timeout: 120_000 }, async (seed) => {
    const startedMs = performance.now();
    const capacity = 12;
    const limit = Limit.concurrent(SLOTS, capacity);
    const namespace = await arena.namespace(START_MS, ({ config }) => config.setResource(RESOURCE, { limits: [limit] }));
    let nowMs = START_MS;
    const { all } = await startClients(namespace, seed, () => nowMs);
    const work = new SlotWork('pool', new Random(seed));
    for (; nowMs < START_MS + 40_000; nowMs += TICK_MS) {
      await Promise.all(all.map(async ({ limiter }) => work.tick(limiter, nowMs, 2)));
      const shards = await arena.shards(namespace, 'pool');
      const { tokens, held } = sumShards(shards, nowMs, SLOTS);
      expect(tokens + held).toBe(capacity * 1_000);
      expect(tokens).toBeGreaterThanOrEqual(0);
      const stored = shards.flatMap(({ holders }) => [...holders.keys()]);
      expect(stored).toEqual(expect.arrayContaining([...work.certain(nowMs)]));
    }
    for (const { proxy } of all) proxy.heal();
    await work.end();
    nowMs += 10_000;
    const everything = { entityId: 'pool', resource: RESOURCE, consume: { [SLOTS]: capacity } };
    expect(await all[0]!.limiter.tryAcquire(everything)).toMatchObject({ granted: true });
    const requests = await stop(all);
    show('slots', startedMs, requests, `${JSON.stringify(work.counts)}, at most ${work.most} at once`);
    expect(work.most).toBeLessThanOrEqual(capacity);
    expect([work.untyped, work.counts.lost]).toEqual([[], 0]);
  });
});
