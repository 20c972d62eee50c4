import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { groups, stalePairs } from '../../../../../tests/support/dynamodb/group/random-groups.js';
import {
  type ShardEngine,
  startShardEngine,
  TABLE_NAME,
} from '../../../../../tests/support/dynamodb/shard/shard-engine.js';
import {
  amount,
  askEntry,
  changeEntry,
  holderOf,
  imageOf,
  KEY,
  limitLists,
  NOW_MS,
  withHolders,
  withTokens,
} from '../../../../../tests/support/dynamodb/shard/shard-images.js';
import { shardWriteHolds } from '../../../../../tests/support/dynamodb/shard/shard-truth.js';
import { buildLeaseId } from '../../../../core/identifiers.js';
import { Limit, MAX_LIMITS } from '../../../../core/limit.js';
import { type EngineName, findEngine } from '../../../../testing/dynamodb/index.js';
import { planGroup } from '../group/plan-group.js';
import type { ShardImage } from '../../table/items.js';
import { applyShardWrite } from '../shard-write.js';
import { applySettlement, planSettle } from '../settle/settle.js';
import { planMerge, planSplit } from '../split.js';
import { buildCreate } from '../../../../../tests/support/dynamodb/write-inputs.js';
import { buildShardWrite } from '../../../../../tests/support/dynamodb/write-inputs.js';
import { buildReset } from '../../../../../tests/support/dynamodb/write-inputs.js';
import { buildSettlement } from '../../../../../tests/support/dynamodb/write-inputs.js';
import { buildMerge, buildSplit } from '../../../../../tests/support/dynamodb/write-inputs.js';

const RUNS = { numRuns: 50 };
const MAX_HOLDERS = 80;
/** A JVM on a busy machine is slow. */
const START_MS = 60_000;
const IDS = { own: 'own-write-id--', unanswered: ['earlier-id-001', 'earlier-id-002'] };

const stored = (image: ShardImage | null): unknown =>
  image === null
    ? null
    : {
        ...image,
        bytes: 0,
        writeUnits: 0,
        limits: new Map(image.limits.map((account) => [account.limit.name, account])),
      };

/** Independently written engines must agree. DynamoDB Local is the strictest. */
describe.each<EngineName>(['dynoxide', 'dynamodb-local'])('%s', (engineName) => {
  const found = findEngine(engineName);
  const reason = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;
  let engine: ShardEngine;
  let namespaces = 0;
  const freshNs = (): string => `ns${String((namespaces += 1)).padStart(9, '0')}`;

  beforeAll(async () => {
    if (found.status === 'available') engine = await startShardEngine(engineName);
  }, START_MS);
  afterAll(async () => engine?.[Symbol.asyncDispose]());

  describe.skipIf(found.status === 'unavailable')(`accepts the built requests${reason}`, () => {
    test('a group is written exactly if its conditions hold on the stored item, with the result that applyShardWrite predicts', async () => {
      let written = 0;
      await fc.assert(
        fc.asyncProperty(stalePairs, groups, async ({ truth, seen }, group) => {
          const ns = freshNs();
          const entries = group(seen);
          const plan = planGroup(seen, entries, {
            nowMs: NOW_MS,
            trust: 'guess',
            lifeFactor: 7,
            withoutRefunds: false,
          });
          if (plan.kind !== 'write' && plan.kind !== 'reclaim') return;
          await engine.put(ns, truth);
          const answer = await engine.send(
            'UpdateItem',
            buildShardWrite({ tableName: TABLE_NAME, ns }, seen, plan.write, IDS),
          );
          const holds = shardWriteHolds(seen, plan.write, truth);
          expect(answer).toMatchObject(holds ? { ok: true } : { ok: false, failure: { kind: 'condition' } });
          const expected = holds ? applyShardWrite(truth, plan.write, IDS.own) : truth;
          expect(stored(await engine.read(ns, KEY))).toEqual(stored(expected));
          if (holds) written += 1;
        }),
        RUNS,
      );
      expect(written).toBeGreaterThan(5);
    });

    test('a settlement is written on the image that it was planned on, with the result that applySettlement predicts', async () => {
      await fc.assert(
        fc.asyncProperty(stalePairs, limitLists(), async ({ truth }, limits) => {
          const ns = freshNs();
          await engine.put(ns, truth);
          const settlement = planSettle(truth, { limits }, NOW_MS);
          const version = { sequence: 2, openedAtMs: NOW_MS };
          const input = buildSettlement({ tableName: TABLE_NAME, ns }, truth, settlement, version, 1_900_000_000, IDS);
          expect(await engine.send('UpdateItem', input)).toMatchObject({ ok: true });
          const gone = truth.limits.filter(
            ({ limit }) => limit.kind === 'rate' && settlement.removed.includes(limit.name),
          );
          const expected = {
            ...applySettlement(truth, settlement),
            retired: new Map(gone.map(({ limit, consumedMilli }) => [limit.name, consumedMilli])),
            version,
            ttlSec: 1_900_000_000,
            writeId: IDS.own,
          };
          const slotless = (image: ShardImage): ShardImage => ({
            ...image,
            // A counter from when the limit was a rate stays, and slots are not counted.
            limits: image.limits.map((account) => ({
              ...account,
              consumedMilli: account.limit.kind === 'rate' ? account.consumedMilli : 0,
            })),
          });
          expect(stored(slotless((await engine.read(ns, KEY))!))).toEqual(stored(slotless(expected)));
        }),
        RUNS,
      );
    });

    test('a bucket is created once', async () => {
      await fc.assert(
        fc.asyncProperty(stalePairs, async ({ truth, seen }) => {
          const target = { tableName: TABLE_NAME, ns: freshNs() };
          expect(await engine.send('PutItem', buildCreate(target, truth))).toMatchObject({ ok: true });
          expect(await engine.send('PutItem', buildCreate(target, seen))).toMatchObject({
            failure: { kind: 'condition' },
          });
          expect(stored(await engine.read(target.ns, KEY))).toEqual(stored(truth));
        }),
        { numRuns: 20 },
      );
    });

    test('a shard is split, merged again and reset', async () => {
      await fc.assert(
        fc.asyncProperty(stalePairs, async ({ truth }) => {
          const target = { tableName: TABLE_NAME, ns: freshNs() };
          await engine.put(target.ns, truth);
          const split = buildSplit(target, truth, planSplit(truth, NOW_MS), 'split-write-id');
          expect(await engine.send('TransactWriteItems', split)).toMatchObject({ ok: true });
          const [stays, leaves] = await Promise.all([
            engine.read(target.ns, KEY),
            engine.read(target.ns, { ...KEY, shard: 1 }),
          ]);
          const merge = planMerge(stays!, leaves!, NOW_MS + 1);
          const retired = new Map([['no-more', 2n ** 60n]]);
          const merged = buildMerge(target, stays!, { ...leaves!, retired }, merge!, 'merge-write-id');
          expect(await engine.send('TransactWriteItems', merged)).toMatchObject({ ok: true });
          const whole = (await engine.read(target.ns, KEY))!;
          expect(whole.retired).toEqual(retired);
          const TransactItems = [buildReset(target, whole, NOW_MS + 2, 'reset-write-id')];
          expect(await engine.send('TransactWriteItems', { TransactItems })).toMatchObject({ ok: true });
          const filled = (await engine.read(target.ns, KEY))!;
          expect(filled).toMatchObject({ shardCount: 1, holders: new Map(), writeId: 'reset-write-id' });
          for (const { tokensMilli, limit } of filled.limits) expect(tokensMilli).toBe(limit.capacityMilli);
        }),
        { numRuns: 20 },
      );
    });

    /** The longest names, and the longest names that need no alias. */
    const namings = [
      ['the longest names', (at: number) => `${'r'.repeat(61)}.${10 + at}`],
      ['plain names', (at: number) => `lim${10 + at}`],
    ] as const;

    describe.each(namings)('as many limits as a bucket may have, with %s', (_names, nameOf) => {
      const limitsOf = (perDay: number): readonly Limit[] =>
        Array.from({ length: MAX_LIMITS }, (_, at) =>
          at % 4 === 3 ? Limit.concurrent(nameOf(at), 100) : Limit.perDay(nameOf(at), perDay),
        );
      /** All limits are taken, debited and refunded at once. */
      const limits = limitsOf(1e12);
      const leaseIds = Array.from({ length: 100 }, (_, at) => buildLeaseId(NOW_MS - at, 0.5));
      const slots = limits.filter(({ kind }) => kind === 'concurrent').map(({ name }) => amount(name, 1_000));
      const rates = limits.filter(({ kind }) => kind === 'rate').map(({ name }) => amount(name, 1e12));
      const holder = holderOf({ slots, rates, caller: 'c'.repeat(256) });
      const key = { entityId: 'e'.repeat(256), resource: `${'r'.repeat(128)}~12345678`, shard: 0 };
      const held = withHolders(imageOf(limits, { key }), Object.fromEntries(leaseIds.map((id) => [id, holder])));
      const late = { nowMs: NOW_MS + 60_000, trust: 'exact', lifeFactor: 7, withoutRefunds: false } as const;

      const largest = {
        takes: {
          image: imageOf(limits, { key, ttlSec: 0 }),
          entries: leaseIds.map((leaseId) =>
            askEntry(limits, Object.fromEntries(limits.map((limit) => [limit.name, 1_000])), {
              leaseId,
              holder,
              version: { sequence: 2, openedAtMs: NOW_MS },
            }),
          ),
        },
        corrections: {
          image: held,
          entries: leaseIds.map((leaseId, at) => {
            const deltas = Object.fromEntries(rates.map(({ name }) => [name, at % 2 === 0 ? 1_000 : -1_000]));
            const fate = at % 3 === 0 ? 'keep' : 'release';
            return changeEntry(limits, deltas, {
              leaseId,
              holder: fate,
              totals: Object.fromEntries(rates.map((rate) => [rate.name, 5])),
            });
          }),
        },
        reclaims: {
          image: withTokens(held, ...limits.map(() => 0)),
          entries: [askEntry(limits, { [limits[3]!.name]: 1_000 })],
        },
      };

      test.each(Object.entries(largest))(
        'the largest group of %s with as many holders as one write may have is accepted',
        async (_, { image, entries }) => {
          const target = { tableName: TABLE_NAME, ns: freshNs() };
          await engine.put(target.ns, image);
          const plan = planGroup(image, entries, late);
          if (plan.kind !== 'write' && plan.kind !== 'reclaim') throw new Error(`It leads to ${plan.kind}`);
          expect(plan.write.holders).toHaveLength(MAX_HOLDERS);
          const input = buildShardWrite(target, image, plan.write, IDS);
          expect(await engine.send('UpdateItem', input)).toMatchObject({ ok: true });
          expect(stored(await engine.read(target.ns, key))).toEqual(
            stored(applyShardWrite(image, plan.write, IDS.own)),
          );
        },
      );

      test('a settlement of all of them to new numbers is accepted', async () => {
        const target = { tableName: TABLE_NAME, ns: freshNs() };
        await engine.put(target.ns, held);
        const settlement = planSettle(held, { limits: limitsOf(1e11) }, NOW_MS);
        const version = { sequence: 2, openedAtMs: NOW_MS };
        const input = buildSettlement(target, held, settlement, version, 1_900_000_000, IDS);
        expect(await engine.send('UpdateItem', input)).toMatchObject({ ok: true });
      });
    });
  });
});
