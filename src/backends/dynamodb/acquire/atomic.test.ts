import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ShardEngine, startShardEngine } from '../../../../tests/support/dynamodb/shard/shard-engine.js';
import {
  amount,
  holderOf,
  imageOf,
  KEY,
  levelOf,
  NOW_MS,
  withTokens,
} from '../../../../tests/support/dynamodb/shard/shard-images.js';
import { openBuckets, type Tap, tapped, TUNING } from '../../../../tests/support/dynamodb/shard/shard-lines.js';
import type { Call, LevelAsk } from '../../../backend.js';
import { buildLeaseId } from '../../../core/identifiers.js';
import { Limit } from '../../../core/limit.js';
import { findEngine } from '../../../testing/dynamodb/index.js';
import { consume } from './consume.js';
import type { ShardImage } from '../table/items.js';

const found = findEngine();
const reason = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;
const RPM = Limit.perMinute('rpm', 1);

describe.skipIf(found.status === 'unavailable')(`atomic asks${reason}`, () => {
  let engine: ShardEngine;
  let namespaces = 0;

  beforeAll(async () => void (engine = await startShardEngine()));
  afterAll(async () => engine?.[Symbol.asyncDispose]());

  const askOf = (entityId: string): LevelAsk => ({
    ...levelOf([RPM], { entityId }),
    asks: [amount('rpm', 1_000)],
    holder: null,
  });
  const levels = [askOf('child'), askOf('parent')];

  function setUp(tap: Tap = async (_, forward) => forward(), random: () => number = Math.random) {
    const call: Call = { namespaceId: `atomic${(namespaces += 1)}`, nowMs: NOW_MS, timeoutMs: 10_000, tuning: TUNING };
    const table = { ...tapped(engine.table, tap), random };
    const buckets = openBuckets(table);
    const ask = (asked: readonly LevelAsk[], leaseId: string | null = null, atomic = true) =>
      consume(buckets, call, { leaseId, levels: asked, ...(atomic ? { atomic } : {}) });
    const tokens = async (entityId: string) => {
      const image = await engine.read(call.namespaceId, { ...KEY, entityId });
      return image?.limits[0]?.tokensMilli;
    };
    return { ask, tokens, ns: call.namespaceId };
  }

  test('an atomic ask takes from all levels or from none', async () => {
    const { ask, tokens } = setUp();
    expect(await ask(levels)).toMatchObject({ kind: 'granted' });
    expect([await tokens('child'), await tokens('parent')]).toEqual([0, 0]);
    expect(await ask([askOf('other'), askOf('parent')])).toMatchObject({ kind: 'denied', reason: 'exhausted' });
    expect(await tokens('other')).toBeUndefined();
  });

  test('an atomic ask is denied as exhausted if another call of this process takes the tokens between its dry run and its transaction', async () => {
    let reads = 0;
    let other: unknown;
    const { ask, tokens } = setUp(async (operation, forward) => {
      // Between the dry run of the child and the transaction.
      if (operation === 'GetItem' && (reads += 1) === 2) other = await ask([askOf('child')], null, false);
      return forward();
    });
    expect(await ask(levels)).toMatchObject({ kind: 'denied', reason: 'exhausted' });
    expect(other).toMatchObject({ kind: 'granted' });
    expect([await tokens('child'), await tokens('parent')]).toEqual([0, undefined]);
  });

  test('an atomic ask whose lease id is taken takes nothing', async () => {
    const { ask, tokens } = setUp();
    const free = Limit.perMinute('rpm', 9);
    const held = (entityId: string): LevelAsk => ({ ...askOf(entityId), limits: [free], holder: holderOf() });
    expect(await ask([held('a'), held('b')], 'lease')).toMatchObject({ kind: 'granted' });
    expect(await ask([held('c'), held('b')], 'lease')).toEqual({ kind: 'id-taken' });
    expect(await tokens('c')).toBeUndefined();
  });

  test.each([true, false])('an atomic ask whose answer is lost counts once (landed: %s)', async (lands) => {
    let isFirst = true;
    const { ask, tokens } = setUp(async (operation, forward) => {
      if (operation !== 'TransactWriteItems' || !isFirst) return forward();
      isFirst = false;
      if (lands) await forward();
      throw Object.assign(new Error('socket hang up'), { name: 'TimeoutError', code: 'ECONNRESET' });
    });
    expect(await ask(levels)).toMatchObject({ kind: 'granted' });
    expect([await tokens('child'), await tokens('parent')]).toEqual([0, 0]);
  });

  describe('atomic asks over several shards', () => {
    const LIMITS = [Limit.perHour('rpm', 60), Limit.perHour('tpm', 40), Limit.concurrent('slots', 12)];
    const trees = fc.constantFrom<readonly (readonly [shard: number, count: number])[]>(
      [[0, 1]],
      [0, 1].map((at) => [at, 2]),
      [[0, 2], ...[1, 3].map((at) => [at, 4] as const)],
      [0, 1, 2, 3].map((at) => [at, 4]),
      [[0, 8], [4, 8], ...[1, 2, 3].map((at) => [at, 4] as const)],
    );
    const part = fc.constantFrom(-0.5, 0, 0.25, 0.6, 1);
    const layouts = fc.record({ tree: trees, parts: fc.array(part, { minLength: 24, maxLength: 24 }) });
    const amounts = fc.record({
      rpm: fc.option(fc.constantFrom(0, 1, 16, 40, 60, 61)),
      tpm: fc.option(fc.constantFrom(0, 1, 25, 40)),
      slots: fc.option(fc.constantFrom(1, 4, 12, 13)),
    });
    type Layout = typeof layouts extends fc.Arbitrary<infer L> ? L : never;

    const shardsOf = (entityId: string, { tree, parts }: Layout) =>
      tree.map(([shard, shardCount], at) => {
        const image = imageOf(LIMITS, {
          key: { ...KEY, entityId, shard },
          shardCount,
          baseMs: NOW_MS,
          ttlSec: shardCount === 1 ? NOW_MS / 1_000 + 864_000 : null,
          onSweepList: shardCount > 1,
          writeId: buildLeaseId(NOW_MS, 0),
        });
        return withTokens(
          image,
          ...image.limits.map(({ rate, limit }, index) => {
            const milli = Math.floor(rate.capacityMilli * (parts[3 * at + index] ?? 1));
            return limit.kind === 'concurrent' ? Math.max(0, milli - (milli % 1_000)) : milli;
          }),
        );
      });

    const total = (shards: readonly (ShardImage | null)[]) =>
      LIMITS.map(({ name }) =>
        shards.reduce(
          (sum, image) => sum + Number(image?.limits.find((one) => one.limit.name === name)?.tokensMilli),
          0,
        ),
      );

    test('an atomic ask over any shards of any levels gets the decision and takes the amounts of an ask that is not atomic', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(layouts, { minLength: 1, maxLength: 3 }), amounts, async (drawn, counts) => {
          const asks = Object.entries(counts).flatMap(([name, count]) =>
            count === null ? [] : [amount(name, count * 1_000)],
          );
          if (asks.length === 0) return;
          const holder = holderOf({ slots: asks.filter(({ name }) => name === 'slots') });
          const decide = async (atomic: boolean) => {
            // Both runs draw the same shards, but different write ids.
            let draws = 0;
            const { ask, ns } = setUp(undefined, () => 0.36 + (draws++ % 100) * 5e-6);
            const images = drawn.flatMap((layout, at) => shardsOf(`level-${at}`, layout));
            await Promise.all(images.map(async (image) => engine.put(ns, image)));
            const asked = drawn.map((_, at) => ({ ...levelOf(LIMITS, { entityId: `level-${at}` }), asks, holder }));
            const outcome = await ask(asked, 'lease', atomic);
            const left = await Promise.all(images.map(async ({ key }) => engine.read(ns, key)));
            const why = outcome.kind === 'denied' ? outcome.reason : null;
            return { kind: outcome.kind, why, left: outcome.kind === 'granted' ? total(left) : null };
          };
          const [atomic, plain] = [await decide(true), await decide(false)];
          expect(atomic).toEqual(plain);
        }),
        { numRuns: 15 },
      );
    });
  });
});
