import type { LevelAnswer, LevelAsk, LevelRef } from '../../backend.js';
import { credit, effectiveTokens, waitForTokens } from '../../core/bucket.js';
import { reconcile } from '../../core/config.js';
import { type Amount, amountOf, decide, exceedsCapacity, type Verdict } from '../../core/decide.js';
import { add, type Int } from '../../core/int.js';
import type { EpochMs } from '../../core/units.js';
import { bornImage } from './born.js';
import type { Deadline } from './deadline.js';
import { hasExpired, planReclaim } from './group.js';
import { decodeShard, type ShardImage } from './items.js';
import { buildShardKey } from './keys.js';
import { applyMove } from './move.js';
import { readItems, type Table } from './requests.js';
import { applySettlement, planSettle } from './settle.js';

/** All shards of each bucket as the store has them now, in the order of the references; none: there is no bucket. */
export async function readBuckets(
  table: Table,
  ns: string,
  refs: readonly { readonly entityId: string; readonly resource: string; readonly limits?: LevelRef['limits'] }[],
  deadline: Deadline,
  decode: typeof decodeShard = decodeShard,
): Promise<readonly (readonly ShardImage[])[]> {
  const first = await readItems(
    table,
    refs.map(({ entityId, resource }) => buildShardKey(ns, { entityId, resource, shard: 0 })),
    deadline,
  );
  return Promise.all(
    refs.map(async ({ entityId, resource, limits = [] }, at) => {
      const item = first[at];
      if (item === undefined) return [];
      const shards = [decode(item, limits)];
      // A shard may have been split further than the one that it came from.
      for (let next = 1, count = shards[0]?.shardCount ?? 1; next < count;) {
        const wanted = Array.from({ length: count - next }, (_, more) => next + more);
        const keys = wanted.map((shard) => buildShardKey(ns, { entityId, resource, shard }));
        const found = (await readItems(table, keys, deadline)).filter((other) => other !== undefined);
        shards.push(...found.map((other) => decode(other, limits)));
        next = count;
        count = Math.max(count, ...shards.map(({ shardCount }) => shardCount));
      }
      return shards;
    }),
  );
}

/** As if the config were settled and expired holders taken back: looking changes nothing. */
export function asSettled(image: ShardImage, level: LevelRef | null, nowMs: EpochMs): ShardImage {
  const settles = level !== null && reconcile(image, level) === 'settle';
  let settled = settles ? applySettlement(image, planSettle(image, level, nowMs)) : image;
  // One write takes back only so many.
  while (hasExpired(settled, nowMs)) settled = applyMove(settled, planReclaim(settled, nowMs), settled.writeId);
  return settled;
}

/** How a level stands to what is asked of it, over all shards of its bucket. */
export function judgeLevel(shards: readonly ShardImage[], level: LevelAsk, asks: Asks, nowMs: EpochMs): LevelAnswer {
  const images = shards.length === 0 ? [bornImage({ ...level, shard: 0 }, level, nowMs)] : shards;
  const settled = images.map((image) => asSettled(image, level, nowMs));
  const perShard = settled.map((image) => decide(image, asks(image), nowMs));
  const configIsOlder = images.some((image) => reconcile(image, level) === 'reread');
  const verdicts = perShard.length === 1 ? (perShard[0] ?? []) : sumVerdicts(settled, perShard, nowMs);
  return { verdicts, configIsOlder };
}

type Asks = (image: ShardImage) => readonly Amount[];

/** Every limit of the bucket, for 0 if not named. */
export function everyLimit({ asks }: LevelAsk): Asks {
  return ({ limits }) => limits.map(({ limit }) => ({ name: limit.name, milli: amountOf(asks, limit.name) ?? 0 }));
}

/** What the shards have together; where that is not enough, the shortest of their waits. */
function sumVerdicts(
  images: readonly ShardImage[],
  perShard: readonly (readonly Verdict[])[],
  nowMs: EpochMs,
): readonly Verdict[] {
  return (perShard[0] ?? []).map((first) => {
    const parts = perShard.flatMap((verdicts) => verdicts.filter(({ limit }) => limit.name === first.limit.name));
    const effectiveMilli = parts.map((part) => part.effectiveMilli).reduce(add);
    const sum = { ...first, effectiveMilli, waitMs: 0 };
    if (effectiveMilli >= first.requestedMilli) return sum;
    const waits = parts.flatMap(({ waitMs }) => (waitMs === null ? [] : [waitMs]));
    return { ...sum, waitMs: waits.length === 0 ? waitTogether(images, sum, nowMs) : Math.min(...waits) };
  });
}

/** An ask that no shard fits alone is served by several of them; null: it is larger than the whole limit. */
function waitTogether(images: readonly ShardImage[], verdict: Verdict, nowMs: EpochMs): number | null {
  if (exceedsCapacity(verdict)) return null;
  const { limit, effectiveMilli, requestedMilli } = verdict;
  if (limit.kind === 'rate') return waitForShares(images, limit.name, requestedMilli, nowMs);
  // A lease may hold slots on several shards, under one id.
  const held = images.flatMap(({ holders }) => [...holders.values()]);
  const holders = new Map(held.map((holder, at) => [String(at), holder]));
  const whole = { baseMs: nowMs, limits: [{ limit, tokensMilli: effectiveMilli }], holders };
  return decide(whole, [{ name: limit.name, milli: requestedMilli }], nowMs)[0]?.waitMs ?? null;
}

/** The least wait after which the shares have the ask together: a share that is full meanwhile waits for the others. */
function waitForShares(images: readonly ShardImage[], name: string, needMilli: number, nowMs: EpochMs): number {
  const shares = images.flatMap(({ baseMs, limits }) =>
    limits.filter(({ limit }) => limit.name === name).map((account) => ({ ...account, baseMs })),
  );
  const haveAfter = (ms: number): Int =>
    shares
      .map(({ rate, tokensMilli, baseMs }) => effectiveTokens(rate, tokensMilli, credit(rate, baseMs, nowMs + ms)))
      // The debt of one shard takes nothing from the others.
      .reduce((sum, milli) => (milli > 0 ? add(sum, milli) : sum), 0);
  const untilFull = shares.map(({ rate, tokensMilli, baseMs }) =>
    Number(waitForTokens(rate, tokensMilli, baseMs, rate.capacityMilli, nowMs)),
  );
  let tooEarlyMs = 0;
  let enoughMs = Math.max(1, ...untilFull);
  while (enoughMs - tooEarlyMs > 1) {
    const middleMs = Math.floor((tooEarlyMs + enoughMs) / 2);
    if (haveAfter(middleMs) >= needMilli) enoughMs = middleMs;
    else tooEarlyMs = middleMs;
  }
  return enoughMs;
}
