import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { groups, type StalePair, stalePairs } from '../../../../../tests/support/dynamodb/group/random-groups.js';
import { KEY, NOW_MS } from '../../../../../tests/support/dynamodb/shard/shard-images.js';
import { shardWriteHolds } from '../../../../../tests/support/dynamodb/shard/shard-truth.js';
import type { AskedAmount, Verdict } from '../../../../core/bucket/decide.js';
import { conclude } from '../../../../core/bucket/conclude.js';
import { type Bucket, createBucket, move, negated, release } from '../../../embedded/bucket.js';
import { consume } from '../../../embedded/consume.js';
import { MemorySpace } from '../../../embedded/memory-space.js';
import { correctVerdicts } from '../shard-write.js';
import type { AskEntry, Entry, EntryResult } from './entries.js';
import type { Trust } from './group-draft.js';
import { planGroup } from './plan-group.js';
import type { ShardImage } from '../../table/items.js';
import { applyShardWrite, type ShardWrite } from '../shard-write.js';
import { applySettlement, planSettle } from '../settle/settle.js';

const RUNS = { numRuns: 1_000 };
/** Each group writes at least one grant, reclaims expired holders, or answers. */
const MAX_PLANS = 40;

/** What a caller gets. */
interface Told {
  readonly kind: 'granted' | 'denied' | 'id-taken';
  readonly reason?: string;
  readonly retryAfterMs?: number | null;
  /** The balance, the amount and the wait of each limit. */
  readonly limits?: readonly (readonly [name: string, hadMilli: bigint, askedMilli: number, waitMs: number | null])[];
}

function toldOf(kind: 'granted' | 'denied', verdicts: readonly Verdict[]): Told {
  const conclusion = conclude([{ verdicts }]);
  const limits = verdicts.map(
    ({ limit, effectiveMilli, requestedMilli, waitMs }) =>
      [limit.name, BigInt(effectiveMilli), requestedMilli, waitMs] as const,
  );
  if (conclusion.granted) return { kind, limits };
  const { reason, retryAfterMs } = conclusion;
  // An ask above the capacity is denied without a request: only the capacity is certain.
  return reason === 'impossible' ? { kind, reason, retryAfterMs } : { kind, reason, retryAfterMs, limits };
}

/** The same bucket in the memory backend. */
function bucketOf({ baseMs, version, limits, holders }: ShardImage): Bucket {
  const rules = limits.map(({ limit }) => limit);
  const bucket = createBucket(rules, version, baseMs);
  for (const [at, account] of bucket.limits.entries()) account.tokensMilli = limits[at]!.tokensMilli;
  return { ...bucket, holders: new Map(holders) };
}

/** The expired holders that were reclaimed, by the number of answers before. */
type Reclaims = ReadonlyMap<number, readonly string[]>;

function answersOfMemory(truth: ShardImage, asks: readonly AskEntry[], reclaims: Reclaims): Told[] {
  const space = new MemorySpace();
  const bucket = bucketOf(truth);
  space.writeBucket(KEY.entityId, KEY.resource, bucket, NOW_MS);
  return asks.map(({ level, leaseId }, at) => {
    for (const id of reclaims.get(at) ?? []) reclaimHolder(bucket, id);
    const outcome = consume(space, { leaseId, levels: [level] }, NOW_MS);
    return outcome.kind === 'id-taken' ? { kind: 'id-taken' } : toldOf(outcome.kind, outcome.levels[0]!.verdicts);
  });
}

function reclaimHolder(bucket: Bucket, leaseId: string): void {
  const rates = bucket.holders.get(leaseId)?.rates ?? [];
  release(bucket, leaseId, NOW_MS);
  move(bucket, 'rate', negated(rates), NOW_MS);
}

interface Grouped {
  readonly answers: readonly Told[];
  readonly reclaims: Reclaims;
}

/** Writes asks in groups, as a process does whose image differs from the stored item. */
function writeInGroups({ truth, seen }: StalePair, asks: readonly AskEntry[], firstTrust: Trust): Grouped {
  let [stored, image, trust] = [truth, seen, firstTrust];
  let waiting: readonly Entry[] = asks;
  const answers = new Map<Entry, Told>();
  const reclaims = new Map<number, readonly string[]>();
  const deliver = (results: readonly (EntryResult | null)[]): void => {
    for (const [at, result] of results.entries()) if (result !== null) answers.set(waiting[at]!, toldByGroup(result));
    waiting = waiting.filter((entry) => !answers.has(entry));
  };
  for (let plans = 0; waiting.length > 0; plans++) {
    if (plans > MAX_PLANS) throw new Error('The group is never written');
    const plan = planGroup(image, waiting, { nowMs: NOW_MS, trust, lifeFactor: 7, withoutRefunds: false });
    const planned = image;
    if (plan.kind === 'answer') deliver(plan.results);
    if ((plan.kind === 'write' || plan.kind === 'reclaim') && shardWriteHolds(image, plan.write, stored)) {
      stored = applyShardWrite(stored, plan.write, `write-${plans}`);
      if (plan.kind === 'write') deliver(correctVerdicts(plan.results, plan.write, planned, stored, NOW_MS));
      else reclaims.set(answers.size, [...(reclaims.get(answers.size) ?? []), ...idsOf(plan.write)]);
    }
    if (plan.kind === 'settle' && image === stored) {
      stored = { ...applySettlement(stored, planSettle(stored, plan.level, NOW_MS)), version: plan.level.version };
    }
    [image, trust] = [stored, 'exact'];
  }
  return { answers: asks.map((ask) => answers.get(ask)!), reclaims };
}

function idsOf({ holders }: ShardWrite): string[] {
  return holders.map(({ leaseId }) => leaseId);
}

function toldByGroup(result: EntryResult): Told {
  if (result.kind === 'id-taken') return { kind: 'id-taken' };
  if (result.kind !== 'granted' && result.kind !== 'denied') throw new Error(`An ask was answered as ${result.kind}`);
  return toldOf(result.kind, result.answer.verdicts);
}

/** A stale image may have less than the store: an ask that may be cut takes less then, so that its answer differs. */
function whole(entry: Entry): Entry {
  if (entry.kind !== 'ask') return entry;
  return { ...entry, level: { ...entry.level, asks: entry.level.asks.map((ask) => without('atMost', ask)) } };
}

/**
 * The asks of a random group, each with its own lease: of two with one id, the second would wait for the next write.
 * Each ask leaves the same share of every limit, so that the order of the group is the order of these shares. Where an ask
 * may be cut, no ask leaves any: it comes after all others, and may have to wait until the reserve of one of them is written.
 */
function asksOf(entries: readonly Entry[]): AskEntry[] {
  // The memory backend has no races, so that it puts no shadow aside.
  const asks = entries.filter((entry) => entry.kind === 'ask').map(withoutAside);
  return ordered(asks.some(mayBeCut) ? asks.map(withoutReserves) : asks);
}

function withoutAside(ask: AskEntry): AskEntry {
  const { shadowsAside: _, ...rest } = ask;
  return rest;
}

function withoutReserves(ask: AskEntry): AskEntry {
  return { ...ask, level: { ...ask.level, asks: ask.level.asks.map((one) => without('reserve', one)) } };
}

function without(option: 'atMost' | 'reserve', ask: AskedAmount): AskedAmount {
  const { [option]: _, ...rest } = ask;
  return rest;
}

function ordered(asks: readonly AskEntry[]): AskEntry[] {
  return asks
    .filter(({ leaseId }, at) => leaseId === null || asks.findIndex((other) => other.leaseId === leaseId) === at)
    .map((ask) => ({ ...ask, level: { ...ask.level, asks: withOneReserve(ask.level.asks) } }))
    .toSorted((a, b) => reserveOf(a.level.asks) - reserveOf(b.level.asks))
    .toSorted((a, b) => Number(mayBeCut(a)) - Number(mayBeCut(b)));
}

function mayBeCut({ level }: AskEntry): boolean {
  return level.asks.some(({ atMost }) => atMost === true);
}

function withOneReserve(asks: AskEntry['level']['asks']): AskEntry['level']['asks'] {
  const reserve = reserveOf(asks);
  return asks.map(({ name, milli, shadow, atMost }) => ({
    name,
    milli,
    ...(atMost === undefined ? {} : { atMost }),
    ...(reserve === 0 ? {} : { reserve }),
    ...(shadow === undefined ? {} : { shadow }),
  }));
}

function reserveOf(asks: AskEntry['level']['asks']): number {
  return asks[0]?.reserve ?? 0;
}

/**
 * Whether the stored item has an expired holder that the image lacks. A shadow that is short, by the image and by the stored
 * tokens, causes no reclaim then, so that the balances which the caller is shown do not include what that holder had.
 */
function hidesExpired({ truth, seen }: StalePair): boolean {
  return [...truth.holders].some(([id, { expiresAtMs }]) => expiresAtMs <= NOW_MS && !seen.holders.has(id));
}

describe('groups of asks compared with the memory backend', () => {
  test.each([
    ['a stale image', 'guess', (pair: StalePair) => pair],
    ['the stored item', 'exact', ({ truth }: StalePair) => ({ truth, seen: truth })],
    ['a young image of the stored item', 'young', ({ truth }: StalePair) => ({ truth, seen: truth })],
  ] as const)(
    'a group of asks planned on %s is answered as the memory backend answers the same asks one after another',
    (_from, trust, pairOf) => {
      const seen = new Set<string>();
      fc.assert(
        fc.property(stalePairs, groups, (drawn, group) => {
          const pair = pairOf(drawn);
          const entries = group(pair.seen);
          const asks = asksOf(trust === 'guess' ? entries.map(whole) : entries);
          if (hidesExpired(pair) && asks.some(({ level }) => level.asks.some(({ shadow }) => shadow === true))) return;
          const { answers, reclaims } = writeInGroups(pair, asks, trust);
          // Only a stale image causes a reclaim for an ask that is not short.
          const early = pair.seen === pair.truth ? new Map() : reclaims;
          expect(answers).toEqual(answersOfMemory(pair.truth, asks, early));
          for (const answer of answers) seen.add(answer.reason ?? answer.kind);
        }),
        RUNS,
      );
      expect(seen).toEqual(new Set(['granted', 'exhausted', 'impossible', 'id-taken']));
    },
  );
});
