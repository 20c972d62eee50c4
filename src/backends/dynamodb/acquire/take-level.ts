import type { Awaitable, LevelAnswer, LevelAsk } from '../../../backend.js';
import { type AskedAmount, exceedsCapacity, refuses, type Verdict, askOf } from '../../../core/bucket/decide.js';
import type { EpochMs } from '../../../core/units.js';
import { submitAnd, type Submitted, tuningOf } from './bucket-shards.js';
import { type AskEntry, mayHaveLanded } from '../bucket/group/entries.js';
import { locationOf, takenOf } from '../bucket/grant-location.js';
import { hasRoom, type Shard } from './shard.js';
import { type Asking, type LevelOutcome, type PartOutcome, takeAcross } from './take-across.js';

/** How many shards are asked before the ask is denied. */
const MAX_SHARDS_ASKED = 3;

/** The limiter asks again, under another lease id. */
const ID_TAKEN = { kind: 'id-taken' } as const;

/** Takes from one shard of a bucket, or, if the ask is larger than a share, from as many shards as it needs. */
export function takeLevel(asking: Asking): Awaitable<LevelOutcome> {
  const { bucket, level } = asking;
  if (!level.asks.some(({ shadow }) => shadow === true)) return takeAsAsked(asking);
  const onlyShadows = level.asks.every(({ shadow }) => shadow === true);
  const asked = onlyShadows ? { ...asking, onlyShadows } : asking;
  return bucket.count > 1 ? takeWithShadows(asked) : takeFromOneShard(asked);
}

/** Takes where a limit is a shadow and the bucket is known to have one shard. Another process may have split it since. */
async function takeFromOneShard(asking: Asking): Promise<LevelOutcome> {
  const outcome = await takeAsAsked(asking);
  if (outcome.kind !== 'denied' || asking.bucket.count === 1) return outcome;
  return mayHaveLanded(outcome) ? ID_TAKEN : takeWithShadows(asking);
}

/**
 * Takes from a bucket of several shards where a limit is a shadow. One shard can be short while another has room, so the
 * limits are taken as if they refused, and only those that did refuse are then asked as shadows.
 */
async function takeWithShadows(asking: Asking): Promise<LevelOutcome> {
  const { level } = asking;
  const short = new Set<string>();
  for (;;) {
    const asks = level.asks.map((ask) => (short.has(ask.name) ? ask : withoutShadow(ask)));
    const outcome = await takeAsAsked({ ...asking, level: { ...level, asks }, passesShadows: true });
    if (mayHaveLanded(outcome)) return ID_TAKEN;
    if (outcome.kind === 'contended' && noteShadows(level, short)) continue;
    if (outcome.kind !== 'denied') return outcome.kind === 'granted' ? withShadows(outcome, level) : outcome;
    const denied = withShadows(outcome, level);
    const refusing = denied.answer.verdicts.filter(
      ({ limit, waitMs, shadow }) => shadow === true && waitMs !== 0 && !short.has(limit.name),
    );
    // While the ask has a shadow that can never fit, no limit is taken from several shards. So the others are asked again.
    const tooLarge = refusing.filter((verdict) => neverFits(verdict, level));
    for (const { limit } of tooLarge.length > 0 ? tooLarge : refusing) short.add(limit.name);
    const isRefused = denied.answer.verdicts.some(refuses) && !exceedsShare(denied.answer, level);
    if (isRefused || refusing.length === 0) return denied;
  }
}

/** Adds all shadows: they may have lost the races of the ask. False: it was asked with all of them as shadows. */
function noteShadows({ asks }: LevelAsk, short: Set<string>): boolean {
  const { size } = short;
  for (const { name, shadow } of asks) if (shadow === true) short.add(name);
  return short.size > size;
}

function withoutShadow(ask: AskedAmount): AskedAmount {
  const { shadow: _, ...enforced } = ask;
  return enforced;
}

function withShadows<T extends Granted | Denial>(outcome: T, { asks }: LevelAsk): T {
  const verdicts = outcome.answer.verdicts.map((verdict): Verdict =>
    askOf(asks, verdict.limit.name)?.shadow === true ? { ...verdict, shadow: true } : verdict,
  );
  return { ...outcome, answer: { ...outcome.answer, verdicts } };
}

function takeAsAsked(asking: Asking): Awaitable<LevelOutcome> {
  const { bucket, level, call } = asking;
  bucket.largestAsks.note(level.asks, call.nowMs);
  const entry = entryOf(asking, level, true);
  const { deadline } = asking;
  const request = { entry, deadline, tuning: tuningOf(call), signal: call.signal };
  const first = submitAnd(bucket, bucket.pick(), request, (asked) => takeElsewhere(asking, entry, asked));
  if (first instanceof Promise) return first;
  // The common denial is answered without a turn of the event loop.
  return bucket.count === 1 ? first.result : takeElsewhere(asking, entry, first);
}

/** A denial from the deny cache, for a bucket of one shard. null: the store must decide. */
export function recallLevel(asking: Asking): LevelOutcome | null {
  const { bucket, level, call } = asking;
  if (bucket.count > 1) return null;
  return bucket.shard(0).recall(entryOf(asking, level, true), tuningOf(call));
}

/** If the first shard denied the ask: asks other shards, or takes from several where one cannot be enough. */
function takeElsewhere(asking: Asking, entry: AskEntry, first: Asked): Awaitable<LevelOutcome> {
  const outcome = concluded(asking, first);
  if ((outcome.kind !== 'denied' && outcome.kind !== 'crowded') || asking.bucket.count === 1) return outcome;
  // The same shard would be asked again, and the revocation on it would remove the holder that it adds then.
  if (mayHaveLanded(outcome)) return ID_TAKEN;
  if (outcome.kind === 'crowded') return takeFromUncrowded(asking, entry, first, outcome);
  // A pause stops all shards.
  return outcome.answer.pause === undefined ? takeFromOthers(asking, entry, first, outcome) : outcome;
}

async function takeFromOthers(asking: Asking, entry: AskEntry, first: Asked, denied: Denial): Promise<LevelOutcome> {
  const takeFromSeveral = asking.takeAcross ?? (async () => takeAcross(asking, askPart));
  if (exceedsShare(denied.answer, asking.level)) return takeFromSeveral();
  let best = denied;
  for (const shard of otherShards(asking, entry, first.shard.number)) {
    const outcome = concluded(asking, await askShard(asking, shard, entry));
    if (outcome.kind !== 'denied') return outcome;
    if (mayHaveLanded(outcome)) return ID_TAKEN;
    if (outcome.answer.pause !== undefined) return outcome;
    // Shares differ by a remainder, and free slots are spread unevenly: another shard may show that the ask exceeds a
    // share where the first did not.
    if (exceedsShare(outcome.answer, asking.level)) return takeFromSeveral();
    if (longestWait(outcome.answer) < longestWait(best.answer)) best = outcome;
  }
  return best;
}

/** The first answer of another shard that has room for the holder. */
async function takeFromUncrowded(
  asking: Asking,
  entry: AskEntry,
  first: Asked,
  crowded: LevelOutcome,
): Promise<LevelOutcome> {
  for (const shard of otherShards(asking, entry, first.shard.number)) {
    const outcome = concluded(asking, await askShard(asking, shard, entry));
    if (outcome.kind !== 'crowded') return outcome;
    if (mayHaveLanded(outcome)) return ID_TAKEN;
  }
  return crowded;
}

/** Two other shards drawn at random, first the one that has room by its image. */
function otherShards({ bucket }: Asking, entry: AskEntry, asked: number): readonly number[] {
  const others = bucket.all().flatMap(({ number }) => (number === asked ? [] : [number]));
  const drawn: number[] = [];
  for (const pool = others; pool.length > 0 && drawn.length < MAX_SHARDS_ASKED - 1;) {
    drawn.push(...pool.splice(Math.floor(bucket.executor.random() * pool.length), 1));
  }
  const rankOf = (shard: number): number => (hasRoom(bucket.shard(shard), entry) ? 0 : 1);
  return drawn.toSorted((a, b) => rankOf(a) - rankOf(b));
}

type Asked = Submitted<AskEntry>;
type Denial = Extract<LevelOutcome, { readonly kind: 'denied' }>;
type Granted = Extract<LevelOutcome, { readonly kind: 'granted' }>;

function askShard({ bucket, call, deadline }: Asking, shard: number, entry: AskEntry): Awaitable<Asked> {
  return bucket.submit(shard, entry, deadline, tuningOf(call), call.signal);
}

/** The outcome of an ask, with the shard of the grant. Splits or merges the shard in the background if it should be. */
function concluded({ bucket, call }: Asking, { result, shard }: Asked): LevelOutcome {
  if (mayNeedTending(shard, call.nowMs)) bucket.tender.tendInBackground(shard, call);
  return withLocation(result, shard.number, bucket.count);
}

/** Takes a part of an ask from one shard. */
async function askPart(asking: Asking, shard: number, part: LevelAsk, counts: boolean): Promise<PartOutcome> {
  const asked = await askShard(asking, shard, entryOf(asking, part, counts));
  return { outcome: concluded(asking, asked), shard: asked.shard.number };
}

/** Measures the write rate. True, which is seldom: the shard may have to be split or merged. */
function mayNeedTending({ image, pressure }: Shard, nowMs: EpochMs): boolean {
  if (image === null) return false;
  pressure.observe(image, nowMs);
  return image.shardCount > 1 || pressure.wantsSplit(nowMs);
}

function withLocation(outcome: LevelOutcome, shard: number, count: number): LevelOutcome {
  if (outcome.kind !== 'granted' || (shard === 0 && count === 1)) return outcome;
  return { ...outcome, answer: { ...outcome.answer, place: [locationOf(shard, takenOf(outcome.answer))] } };
}

function entryOf(asking: Asking, level: LevelAsk, counts: boolean): AskEntry {
  const { call, leaseId, dryRun = false, passesShadows = false, onlyShadows = false } = asking;
  const entry: AskEntry = { kind: 'ask', level, leaseId, nowMs: call.nowMs, counts };
  if (!dryRun && !passesShadows && !onlyShadows) return entry;
  return {
    ...entry,
    ...(dryRun ? { dryRun } : {}),
    ...(passesShadows ? { passesShadows } : {}),
    ...(onlyShadows ? { onlyShadows } : {}),
  };
}

/** Whether the ask can never fit into one shard although it fits into the whole bucket. */
function exceedsShare({ verdicts }: LevelAnswer, level: LevelAsk): boolean {
  const short = verdicts.filter(refuses);
  return short.some(({ waitMs }) => waitMs === null) && short.every((verdict) => !neverFits(verdict, level));
}

function neverFits(verdict: Verdict, { limits }: LevelAsk): boolean {
  const limit = limits.find(({ name }) => name === verdict.limit.name) ?? verdict.limit;
  return exceedsCapacity({ ...verdict, limit });
}

function longestWait({ verdicts }: LevelAnswer): number {
  return Math.max(0, ...verdicts.filter(refuses).map(({ waitMs }) => waitMs ?? Number.POSITIVE_INFINITY));
}
