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
import { openBuckets, tapped, TUNING } from '../../../../tests/support/dynamodb/shard/shard-lines.js';
import type { Call, LevelAsk } from '../../../backend.js';
import { Limit } from '../../../core/limit.js';
import { findEngine } from '../../../testing/dynamodb/index.js';
import { consume } from './consume.js';
import { quickRandom } from '../../../../tests/support/dynamodb/quick-random.js';

const found = findEngine();
const reason = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;
const LIMITS = [Limit.perDay('rpd', 1_000), Limit.perDay('tpd', 1_000)];
const ASK = { rpd: 1_000, tpd: 50_000 };
const LEVELS = ['child', 'parent'];

describe.skipIf(found.status === 'unavailable')(`asks whose shadow loses every race${reason}`, () => {
  let engine: ShardEngine;
  let namespaces = 0;
  beforeAll(async () => void (engine = await startShardEngine()));
  afterAll(async () => engine?.[Symbol.asyncDispose]());

  const levelsOf = (shadows: readonly string[]): readonly LevelAsk[] =>
    LEVELS.map((entityId) => ({
      ...levelOf(LIMITS, { entityId }),
      asks: Object.entries(ASK).map(([name, milli]) => ({
        ...amount(name, milli),
        ...(shadows.includes(name) ? ({ shadow: true } as const) : {}),
      })),
      holder: holderOf({ rates: Object.entries(ASK).map(([name, milli]) => amount(name, milli)) }),
    }));

  /** Buckets whose `tpd` another process changes before every write: it takes what was there, or gives it back. */
  async function setUp(shardCounts: readonly number[]) {
    const ns = `contended${(namespaces += 1)}`;
    const call: Call = { namespaceId: ns, nowMs: NOW_MS, timeoutMs: 10_000, tuning: TUNING };
    const keys = LEVELS.flatMap((entityId, at) =>
      Array.from({ length: shardCounts[at]! }, (_, shard) => ({
        key: { ...KEY, entityId, shard },
        of: shardCounts[at]!,
      })),
    );
    for (const { key, of: shardCount } of keys) {
      const changes = { key, shardCount, baseMs: NOW_MS, onSweepList: shardCount > 1 };
      await engine.put(ns, imageOf(LIMITS, shardCount > 1 ? { ...changes, ttlSec: null } : changes));
    }
    const read = async () => Promise.all(keys.map(async ({ key }) => (await engine.read(ns, key))!));
    const milliOf = (image: Awaited<ReturnType<typeof read>>[number], name: string) =>
      image.limits.find(({ limit }) => limit.name === name)!;
    let races = 0;
    const table = tapped(engine.table, async (operation, forward) => {
      if (operation === 'UpdateItem' || operation === 'TransactWriteItems') {
        races += 1;
        for (const image of await read()) {
          const { tokensMilli } = milliOf(image, 'tpd');
          const tokens = image.limits.map((account) =>
            account.limit.name === 'tpd'
              ? Number(tokensMilli) < ASK.tpd
                ? account.rate.capacityMilli
                : 0
              : account.tokensMilli,
          );
          await engine.put(ns, withTokens(image, ...tokens));
        }
      }
      return forward();
    });
    const buckets = openBuckets({ ...table, random: quickRandom });
    return {
      ask: async (levels: readonly LevelAsk[], atomic: boolean) =>
        consume(buckets, call, {
          leaseId: 'lease',
          levels,
          ...(atomic ? { atomic } : {}),
        }),
      races: () => races,
      /** What was taken or counted of a limit at each level, and the holders. */
      async taken(name: string) {
        const images = await read();
        return LEVELS.map((entityId) =>
          images
            .filter(({ key }) => key.entityId === entityId)
            .reduce((sum, image) => sum + Number(milliOf(image, name).consumedMilli), 0),
        );
      },
      holders: async () => (await read()).flatMap(({ holders }) => [...holders.values()].map(({ rates }) => rates)),
    };
  }

  test.each([
    ['one write for each level, on one shard,', false, [1, 1]],
    ['one write for each level, on several shards,', false, [2, 4]],
    ['one transaction, on one shard,', true, [1, 1]],
    ['one transaction, on several shards,', true, [2, 4]],
  ])('an ask in %s is granted although other writers win every race for its shadow', async (_, atomic, counts) => {
    const { ask, races, taken, holders } = await setUp(counts);
    const outcome = await ask(levelsOf(['tpd']), atomic);
    expect(outcome).toMatchObject({ kind: 'granted' });
    expect(races()).toBeGreaterThan(2);
    expect([await taken('rpd'), await taken('tpd')]).toEqual([
      [1_000, 1_000],
      [50_000, 50_000],
    ]);
    // What was not taken of the shadow is not in the holder, so that the lease never gives it back.
    const levels = outcome.kind === 'granted' ? outcome.levels : [];
    const takenOf = levels.map(({ verdicts }) =>
      verdicts.flatMap(({ limit, waitMs, requestedMilli }) =>
        waitMs === 0 ? [amount(limit.name, requestedMilli)] : [],
      ),
    );
    expect(await holders()).toEqual(takenOf);
    if (counts[0] === 1) expect(takenOf).toEqual(LEVELS.map(() => [amount('rpd', 1_000)]));
  });

  test('a transaction of which all limits are shadows is tried until it lands', async () => {
    const { ask, races, taken } = await setUp([1, 1]);
    expect(await ask(levelsOf(['rpd', 'tpd']), true)).toMatchObject({ kind: 'granted' });
    expect(races()).toBeGreaterThan(2);
    expect(await taken('tpd')).toEqual([50_000, 50_000]);
  });

  test('an ask is denied where other writers take the limit that is no shadow', async () => {
    const { ask } = await setUp([1, 1]);
    expect(await ask(levelsOf(['rpd']), true)).toMatchObject({ kind: 'denied' });
  });
});
