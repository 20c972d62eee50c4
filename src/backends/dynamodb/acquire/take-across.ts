import type { Call, LevelAnswer, LevelAsk } from '../../../backend.js';
import { type Amount, amountOf, type AskedAmount, decide, type Verdict } from '../../../core/bucket/decide.js';
import { withAmount } from '../../../core/bucket/at-most.js';
import { add, type Int, sub } from '../../../core/int.js';
import { hasBalance, holdsSlots } from '../../../core/limit-kind.js';
import type { EpochMs } from '../../../core/units.js';
import { knownAsks, partOf, refuseAcross, sumOfNear, viewShards } from '../bucket/across-shards.js';
import { runningPause } from '../bucket/shard-pauses.js';
import { readShards } from './bucket-images.js';
import { type BucketShards, tuningOf } from './bucket-shards.js';
import { type Deadline, deadlineIn } from '../../../machine-time.js';
import { type AskEntry, mayHaveLanded, type ResultOf } from '../bucket/group/entries.js';
import type { ShardImage } from '../table/items.js';
import { locationOf, type ShardLocation, takenOf } from '../bucket/grant-location.js';
import { revokeGrant } from './revoke-grant.js';
import { undoLevel } from './change-level.js';

export type LevelOutcome = ResultOf<AskEntry>;

/** One level of an acquire, and where it is taken from. */
export interface Asking {
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

/** What became of a part, on the shard that has decided: a shard that does not exist is served by its parent. */
export interface PartOutcome {
  readonly outcome: LevelOutcome;
  readonly shard: number;
}

/** Takes a part of an ask from one shard. `counts`: it is the first part of the grant. */
type AskPart = (asking: Asking, shard: number, part: LevelAsk, counts: boolean) => Promise<PartOutcome>;

/**
 * Takes from shard after shard as much as each has. If that is not enough, or a shard fails, everything is given back.
 */
export async function takeAcross(whole: Asking, askPart: AskPart): Promise<LevelOutcome> {
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
      const { image, number: existing } = bucket.shard(number);
      // It has turned out to be part of its parent, which was asked before.
      if (existing !== number) continue;
      const [view] = image === null ? [] : viewShards([image], level, call.nowMs);
      const asks = view === undefined ? [] : partOf(view, level.asks, owed, call.nowMs);
      if (asks.length === 0) continue;
      const { outcome, shard } = await askPart(asking, number, partialAsk(level, asks), locations.length === 0);
      if (outcome.kind === 'id-taken' || mayHaveLanded(outcome)) {
        await undoParts(asking, granted, locations);
        return { kind: 'id-taken' };
      }
      if (outcome.kind !== 'granted') continue;
      locations.push(locationOf(shard, takenOf(outcome.answer)));
      granted.push(outcome.answer);
      owed = owed.map((ask) => ({ ...ask, milli: sub(ask.milli, amountOf(asks, ask.name) ?? 0) }));
      if (owed.every(({ milli }) => milli === 0)) {
        return { kind: 'granted', answer: { ...asCut(sumOfAnswers(level, granted), whole.level), place: locations } };
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

/** The amount was fixed before the first part was taken. The other levels of an atomic ask must know that it was cut. */
function asCut(answer: LevelAnswer, { asks }: LevelAsk): LevelAnswer {
  const cut = asks.find(({ atMost, shadow }) => atMost === true && shadow !== true);
  if (cut === undefined) return answer;
  const verdicts = answer.verdicts.map((verdict): Verdict =>
    verdict.limit.name === cut.name && hasBalance(verdict.limit.kind) ? { ...verdict, cut: true } : verdict,
  );
  return { ...answer, verdicts };
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
