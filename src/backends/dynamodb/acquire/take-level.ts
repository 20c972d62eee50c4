import type { Awaitable, Call, LevelAnswer, LevelAsk } from '../../../backend.js';
import {
  type Amount,
  amountOf,
  type AskedAmount,
  decide,
  exceedsCapacity,
  refuses,
  takenMilli,
  type Verdict,
  askOf,
} from '../../../core/bucket/decide.js';
import { withAmount } from '../../../core/bucket/at-most.js';
import { add, type Int, sub } from '../../../core/int.js';
import { holdsSlots } from '../../../core/limit-kind.js';
import type { EpochMs } from '../../../core/units.js';
import { knownAsks, partOf, refuseAcross, sumOfNear, viewShards } from '../bucket/across-shards.js';
import { runningPause } from '../bucket/shard-pauses.js';
import { readShards } from './bucket-images.js';
import { type BucketShards, type Submitted, tuningOf } from './bucket-shards.js';
import { changeLevel } from './change-level.js';
import { type Deadline, deadlineIn } from '../../../machine-time.js';
import type { AskEntry, ResultOf } from '../bucket/group/entries.js';
import type { ShardImage } from '../table/items.js';
import { locationOf, type ShardLocation } from '../bucket/grant-location.js';
import { undoOf, untakenOf } from '../bucket/group/revocation.js';
import { revokeGrant } from './revoke-grant.js';
import { hasRoom, type Shard } from './shard.js';

export type LevelOutcome = ResultOf<AskEntry>;

interface Asking {
  readonly call: Call;
  readonly bucket: BucketShards;
  readonly level: LevelAsk;
  readonly leaseId: string | null;
  readonly deadline: Deadline;
  /** Takes nothing: only finds the shards that the ask could be taken from, which the `place` of the grant names. */
  readonly dryRun?: boolean;
  /** As in `AskEntry`. */
  readonly passesShadows?: true;
  /** As in `AskEntry`. */
  readonly onlyShadows?: true;
  /** How to take an ask that is larger than a share. By default, shard after shard. */
  readonly takeAcross?: () => Promise<LevelOutcome>;
}

/** How many shards are asked before the ask is denied. */
const MAX_SHARDS_ASKED = 3;

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
  return outcome.kind === 'denied' && asking.bucket.count > 1 ? takeWithShadows(asking) : outcome;
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
  const first = askShard(asking, bucket.pick(), entry);
  if (first instanceof Promise) return first.then((asked) => takeElsewhere(asking, entry, asked));
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
  if (outcome.kind === 'crowded' && asking.bucket.count > 1) return takeFromUncrowded(asking, entry, first, outcome);
  if (outcome.kind !== 'denied' || asking.bucket.count === 1) return outcome;
  // A pause stops all shards.
  if (outcome.answer.pause !== undefined && outcome.inDoubt !== true) return outcome;
  // The same shard would be asked again, and the revocation on it would remove the holder that it adds then.
  return outcome.inDoubt === true ? { kind: 'id-taken' } : takeFromOthers(asking, entry, first, outcome);
}

async function takeFromOthers(asking: Asking, entry: AskEntry, first: Asked, denied: Denial): Promise<LevelOutcome> {
  const takeFromSeveral = asking.takeAcross ?? (async () => takeAcross(asking));
  if (exceedsShare(denied.answer, asking.level)) return takeFromSeveral();
  let best = denied;
  for (const shard of otherShards(asking, entry, first.shard.number)) {
    const outcome = concluded(asking, await askShard(asking, shard, entry));
    if (outcome.kind !== 'denied') return outcome;
    if (outcome.inDoubt === true) return { kind: 'id-taken' };
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

function takenOf({ verdicts }: LevelAnswer): readonly Amount[] {
  return verdicts.map((verdict) => ({ name: verdict.limit.name, milli: takenMilli(verdict) }));
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

/**
 * Takes from shard after shard as much as each has. If that is not enough, or a shard fails, everything is given back.
 */
async function takeAcross(whole: Asking): Promise<LevelOutcome> {
  const { bucket, call } = whole;
  const locations: ShardLocation[] = [];
  const granted: LevelAnswer[] = [];
  // Slots may have been released at any time since the image was read.
  const takesSlots = whole.level.limits.some(({ name, kind }) => holdsSlots(kind) && amountOf(whole.level.asks, name));
  await readShards(bucket, call.nowMs, whole.deadline, takesSlots ? 0 : tuningOf(call).denyCacheMs);
  const level = asOneShardGives(viewsOf(whole), whole.level, call.nowMs);
  const asking = { ...whole, level };
  let owed = knownAsks(viewsOf(asking), level);
  try {
    for (const { number } of bucket.all()) {
      const { image } = bucket.shard(number);
      const [view] = image === null ? [] : viewShards([image], level, call.nowMs);
      const asks = view === undefined ? [] : partOf(view, level.asks, owed, call.nowMs);
      if (asks.length === 0) continue;
      const entry = entryOf(asking, partialAsk(level, asks), locations.length === 0);
      const asked = await askShard(asking, number, entry);
      const outcome = concluded(asking, asked);
      if (outcome.kind === 'id-taken' || (outcome.kind === 'denied' && outcome.inDoubt === true)) {
        await undoParts(asking, granted, locations);
        return { kind: 'id-taken' };
      }
      if (outcome.kind !== 'granted') continue;
      locations.push(locationOf(asked.shard.number, takenOf(outcome.answer)));
      granted.push(outcome.answer);
      owed = owed.map((ask) => ({ ...ask, milli: sub(ask.milli, amountOf(asks, ask.name) ?? 0) }));
      if (owed.every(({ milli }) => milli === 0)) {
        return { kind: 'granted', answer: { ...sumOfAnswers(level, granted), place: locations } };
      }
    }
  } catch (error) {
    await undoParts(asking, granted, locations);
    throw error;
  }
  await undoParts(asking, granted, locations);
  const views = viewsOf(asking);
  const answer = { verdicts: refuseAcross(views, level, call.nowMs), configIsOlder: false };
  return { kind: 'denied', answer: { ...answer, ...runningPause(views, call.nowMs) }, remembered: false };
}

/** The limit that may be cut is cut to what the shard with the most of it has. */
function asOneShardGives(views: readonly ShardImage[], level: LevelAsk, nowMs: EpochMs): LevelAsk {
  const ask = level.asks.find(({ atMost }) => atMost === true);
  if (ask === undefined) return level;
  const verdicts = views.flatMap((view) => decide(view, [ask], nowMs));
  const best = verdicts.reduce(
    (most, { cut, requestedMilli }) => (cut === true ? Math.max(most, requestedMilli) : most),
    0,
  );
  return withAmount(level, ask.name, best === 0 ? Number(ask.milli) : best);
}

/** A part that cannot be given back stays taken, which is the strict side. `onError` is the only trace of it. */
async function undoParts(
  asking: Asking,
  granted: readonly LevelAnswer[],
  locations: readonly ShardLocation[],
): Promise<void> {
  const { call, level } = asking;
  if (locations.length === 0 || asking.dryRun === true) return;
  // The deadline of the call may have passed. What it took must be given back anyway.
  const deadline = Math.max(asking.deadline, deadlineIn(call.timeoutMs));
  try {
    await undoLevel({ ...asking, deadline }, { ...sumOfAnswers(level, granted), place: locations });
  } catch (error) {
    if (revokeGrant(asking, { ...sumOfAnswers(level, granted), place: locations })) return;
    call.tuning?.onError?.(error, 'giving back what an ask over several shards had taken');
  }
}

/** The part of an ask that is taken from one shard. */
export function partialAsk(level: LevelAsk, asks: readonly AskedAmount[]): LevelAsk {
  return { ...level, asks, holder: holderOf(level, asks) };
}

/** The shards that have an image, as if settled and reclaimed. */
function viewsOf({ bucket, level, call }: Asking): readonly ShardImage[] {
  const images = bucket.all().flatMap(({ image }) => image ?? []);
  return viewShards(images, level, call.nowMs);
}

function holderOf({ holder }: LevelAsk, asks: readonly Amount[]): LevelAsk['holder'] {
  if (holder === null) return null;
  const within = (amounts: readonly Amount[]) =>
    amounts.flatMap(({ name }) => asks.filter((ask) => ask.name === name).map(({ milli }) => ({ name, milli })));
  const { slots, rates, portable } = holder;
  return {
    ...holder,
    slots: within(slots),
    rates: rates === null ? null : within(rates),
    ...(portable === undefined ? {} : { portable: { ...portable, taken: within(portable.taken) } }),
  };
}

/** One answer for the parts: their sum, which may be less than was asked. */
function sumOfAnswers(level: LevelAsk, answers: readonly LevelAnswer[]): LevelAnswer {
  const verdicts = level.asks.flatMap(({ name }): Verdict[] => {
    const parts = answers.flatMap((answer) => answer.verdicts.filter(({ limit }) => limit.name === name));
    const [first] = parts;
    if (first === undefined) return [];
    const effectiveMilli = parts.reduce<Int>((sum, part) => add(sum, part.effectiveMilli), 0);
    const requestedMilli = parts.reduce((sum, part) => sum + part.requestedMilli, 0);
    return [{ ...first, ...sumOfNear(parts), effectiveMilli, requestedMilli }];
  });
  return { verdicts, configIsOlder: answers.some(({ configIsOlder }) => configIsOlder) };
}

/** Undoes a grant on the shards that it was taken from. */
export async function undoLevel(
  { bucket, call, level, leaseId, deadline }: Asking,
  answer: LevelAnswer,
): Promise<void> {
  const untaken = untakenOf(answer);
  const changing = { bucket, call, level: undoOf(level, answer), leaseId: leaseId ?? '', deadline, untaken };
  await changeLevel(changing, true);
}
