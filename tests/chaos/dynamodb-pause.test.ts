import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { findEngine } from '../../src/testing/dynamodb/index.js';
import { Arena, type Namespace } from '../support/dynamodb/workloads/arena.js';
import { LIMIT, type Outcome, RESOURCE } from '../support/dynamodb/workloads/bucket-work.js';
import { TakerPool } from './taker-pool.js';

const found = findEngine('dynoxide');
const why = found.status === 'unavailable' ? ` (skipped: ${found.reason})` : '';

const START_MS = 1_800_000_000_000;
const PROCESSES = 8;
const TAKES_PER_TICK = 40;
/** The `denyCacheMs` of the processes. */
const DENY_CACHE_MS = 1_500;
const TEAM = { entityId: 'team', resource: RESOURCE };

describe.skipIf(found.status === 'unavailable')(`a pause among eight processes at full speed${why}`, () => {
  let arena: Arena;
  let pool: TakerPool;
  let leases = 0;

  beforeAll(async () => {
    arena = await Arena.start();
    pool = await TakerPool.start(PROCESSES);
  });
  afterAll(async () => {
    await pool?.stop();
    await arena?.[Symbol.asyncDispose]();
  });

  const openAll = async ({ name: namespace }: Namespace): Promise<void> => {
    const { endpoint, region } = arena.engine;
    const pressure = { paceAbove: 40, splitAbove: Number.MAX_SAFE_INTEGER };
    const { tableName: table } = arena;
    await pool.tell(() => ({ kind: 'open', endpoint, region, table, namespace, pressure, nowMs: START_MS }));
  };
  /** Every process takes for its own child of the team. */
  const tick = async (nowMs: number): Promise<readonly (readonly Outcome[])[]> => {
    const takes = (taker: number) =>
      Array.from({ length: TAKES_PER_TICK }, () => {
        leases += 1;
        return { kind: 'take', lease: leases, entityId: `user-${taker}`, amount: 1 } as const;
      });
    const news = await pool.tell((taker) => ({ kind: 'tick', nowMs, operations: takes(taker) }));
    expect(news.flatMap(({ reported }) => reported)).toEqual([]);
    return news.map(({ outcomes }) => outcomes);
  };
  const countOf = (outcomes: readonly (readonly Outcome[])[], wanted: (outcome: Outcome) => boolean): number =>
    outcomes.flat().filter(wanted).length;
  const isPaused = (outcome: Outcome): boolean => outcome.kind === 'denied' && outcome.reason === 'paused';

  test.each([1, 4])(
    'no process takes from a parent of %i shards after its pause was written, and all resume',
    async (shards) => {
      const namespace = await arena.namespace(START_MS, async (limiter) => {
        await limiter.config.setSystem({ limits: [Limit.perHour(LIMIT, 100_000_000)] });
        await limiter.entities.create({ id: 'team' });
        for (let taker = 0; taker < PROCESSES; taker++) {
          await limiter.entities.create({ id: `user-${taker}`, parentId: 'team', cascade: true });
        }
      });
      const grants = async (): Promise<number> =>
        (await arena.shards(namespace, 'team')).reduce((sum, { acquires }) => sum + acquires, 0);
      await openAll(namespace);
      await tick(START_MS);
      await arena.splitInto(shards, namespace, 'team', START_MS);
      await using operator = await RateLimiter.open(arena.backend(), {
        namespace: namespace.name,
        clock: { now: () => START_MS },
      });
      let atPause: Promise<number> | null = null;
      for (let ticks = 0, granted = 1; granted > 0; ticks++) {
        const ticking = tick(START_MS);
        // While every process has writes under way.
        if (ticks === 3) {
          atPause = operator.pause({ ...TEAM, forMs: 3_600_000, reason: 'vendor' }).then(grants);
        }
        granted = countOf(await ticking, ({ kind }) => kind === 'granted');
      }
      const counted = await atPause;
      expect(await grants()).toBe(counted);
      const later = await tick(START_MS + DENY_CACHE_MS);
      expect(countOf(later, isPaused)).toBe(PROCESSES * TAKES_PER_TICK);
      expect(await grants()).toBe(counted);
      await operator.resume(TEAM);
      const resumed = await tick(START_MS + 2 * DENY_CACHE_MS);
      expect(countOf(resumed, isPaused)).toBe(0);
      expect(await grants()).toBe((counted ?? 0) + countOf(resumed, ({ kind }) => kind === 'granted'));
    },
  );
});
