import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Backend } from '../../src/backend.js';
import { Limit } from '../../src/core/limit.js';
import type { ReconcilerReport } from '../../src/backends/dynamodb/reconciler/report.js';
import { Random } from '../../src/testing/conformance/kit/random.js';
import { type Engine, fault, startEngine, startFaultProxy } from '../../src/testing/dynamodb/index.js';
import { ENGINE } from '../support/dynamodb/world.js';
import { HOUR_MS, MINUTE_MS, ReconcilerWorld, slots, START_MS, tokensOf } from '../support/reconciler/world.js';

const SLOTS = 16;
const LIMITS = [Limit.perHour('rph', 400), Limit.concurrent('slots', SLOTS)];
const BUCKETS = ['user-1', 'user-2', 'user-3'];
const ROUNDS = 30;

type Held = Awaited<ReturnType<ReconcilerWorld['hold']>> & { readonly backend: Backend };

describe.skipIf(ENGINE.missing)(`reconcilers beside active clients${ENGINE.note}`, () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(async () => engine?.stop());

  /** One random operation of one process. It may be refused or get no answer. */
  const act = async (world: ReconcilerWorld, backend: Backend, random: Random, held: Held[], nowMs: number) => {
    const entityId = random.pick(BUCKETS);
    const choice = random.whole(0, 9);
    if (choice < 6) {
      const asks = [...slots(random.whole(1, 3)), { name: 'rph', milli: 1_000 }];
      const untilMs = nowMs + random.whole(1, 20) * MINUTE_MS;
      const taken = await world.hold(entityId, { asks, untilMs, nowMs, refunds: random.whole(0, 1) === 0 }, backend);
      held.push({ ...taken, backend });
    } else if (choice < 9 && held.length > 0) {
      const [lease] = held.splice(random.whole(0, held.length - 1), 1);
      const { leaseId, level } = lease!;
      const change = { ...level, amounts: [], holder: 'release' } as const;
      if (choice < 8) await lease!.backend.adjust(world.call(nowMs), { leaseId, levels: [change] });
      else {
        const expiresAtMs = nowMs + 30 * MINUTE_MS;
        await lease!.backend.extend(world.call(nowMs), { leaseId, levels: [level], expiresAtMs });
      }
    } else {
      const shards = await world.shards(entityId);
      const shard = random.pick(shards.length === 0 ? [0] : shards.map(({ key }) => key.shard));
      if (shards.length > 0 && shards.length < 6) await world.split(entityId, shard, nowMs);
    }
  };

  test.each([1, 2, 3])(
    'reconcilers beside clients that take, extend, release and split find no slot to heal, and every slot is free in the end (seed %i)',
    async (seed) => {
      const world = await ReconcilerWorld.create(engine, LIMITS);
      await using proxy = await startFaultProxy(engine.endpoint, { seed });
      const writes = ['UpdateItem', 'TransactWriteItems'];
      proxy.inject(fault.loseAnswer(), { operations: writes, probability: 0.1 });
      proxy.inject(fault.loseRequest(), { operations: writes, probability: 0.05 });
      proxy.inject(fault.transactionConflict(), { operations: writes, probability: 0.1 });
      const random = new Random(seed);
      const backends = [world.openBackend(), world.openBackend()];
      const reconcilers = [world.through(engine, proxy.endpoint), world.table];
      const held: Held[] = [];
      const reports: ReconcilerReport[] = [];
      let nowMs = START_MS;
      for (let round = 0; round < ROUNDS; round++) {
        const acts = backends.flatMap((backend) => [1, 2, 3].map(async () => act(world, backend, random, held, nowMs)));
        const sweeps = reconcilers.map(async (table) => world.sweep(nowMs, table));
        await Promise.allSettled(acts);
        reports.push(...(await Promise.all(sweeps)));
        nowMs += random.pick([1_000, MINUTE_MS, 10 * MINUTE_MS, HOUR_MS]);
      }
      nowMs += 24 * HOUR_MS;
      reports.push(await world.sweep(nowMs));
      const sum = (field: 'healed' | 'failed' | 'reclaimed' | 'merged'): number =>
        reports.reduce((total, report) => total + report[field], 0);
      expect([sum('healed'), sum('failed')]).toEqual([0, 0]);
      expect(sum('reclaimed')).toBeGreaterThan(0);
      for (const entityId of BUCKETS) {
        const bucket = await world.bucket(entityId);
        expect([entityId, bucket.holders.size, tokensOf(bucket, 'slots')]).toEqual([entityId, 0, SLOTS]);
      }
      expect(await world.listed()).toEqual([]);
      expect(sum('merged')).toBeGreaterThan(0);
    },
  );
});
