import type { Call, LevelAnswer, LevelAsk, LevelChange } from '../../backend.js';
import { credit, effectiveTokens, waitForTokens } from '../../core/bucket.js';
import { type Amount, amountOf, type Verdict } from '../../core/decide.js';
import { add, type Int, min, sub } from '../../core/int.js';
import { MILLI } from '../../core/units.js';
import type { BucketShards } from './bucket-shards.js';
import { changeLevel } from './change-level.js';
import { type Deadline, deadlineIn } from './deadline.js';
import type { AskEntry, EntryResult } from './entries.js';
import { asReclaimed } from './peek.js';
import { placeOf, type ShardPlace } from './place.js';
import type { ShardLine } from './shard-line.js';
import { tuningOf } from './tuning.js';

export type LevelOutcome = Extract<
  EntryResult,
  { readonly kind: 'granted' | 'denied' | 'unheld' | 'id-taken' | 'contended' }
>;

interface Asking {
  readonly call: Call;
  readonly bucket: BucketShards;
  readonly level: LevelAsk;
  readonly leaseId: string | null;
  readonly deadline: Deadline;
}

/** Shards that are asked before a denial stands. */
const MOST_SHARDS_ASKED = 3;
const TEND_WITHIN_MS = 2_000;

/** Takes from one bucket: from one of its shards, or if the ask is larger than a share, from as many as it needs. */
export function takeLevel(asking: Asking): LevelOutcome | Promise<LevelOutcome> {
  const { bucket, level, call } = asking;
  bucket.noteAsk(level, call.nowMs);
  // The common case of a denial, without a turn of the event loop.
  return recallLevel(asking) ?? takeSomewhere(asking, entryOf(asking, level, true));
}

/** The answer of one shard that is remembered to be empty; null: the store must be asked. */
export function recallLevel(asking: Asking): LevelOutcome | null {
  const { bucket, level, call } = asking;
  if (bucket.count > 1) return null;
  const recalled = bucket.line(0).recall(entryOf(asking, level, true), tuningOf(call));
  return recalled !== null && isOutcome(recalled) ? recalled : null;
}

async function takeSomewhere(asking: Asking, entry: AskEntry): Promise<LevelOutcome> {
  const { bucket } = asking;
  const first = await askShard(asking, bucket.pick(), entry);
  if (first.outcome.kind !== 'denied' || bucket.count === 1) return first.outcome;
  if (exceedsShare(first.outcome.answer, asking.level)) return takeAcross(asking);
  let best = first.outcome;
  const asked = new Set([first.line.shard]);
  for (const shard of otherShards(asking, entry, asked)) {
    const { outcome, line } = await askShard(asking, shard, entry);
    if (outcome.kind !== 'denied') return outcome;
    asked.add(line.shard);
    if (longestWait(outcome.answer) < longestWait(best.answer)) best = outcome;
  }
  return best;
}

/** The better of two others by what is remembered, then the other of the two. */
function otherShards({ bucket, call }: Asking, entry: AskEntry, asked: ReadonlySet<number>): readonly number[] {
  const others = new Set<number>();
  for (let shard = 0; shard < bucket.count; shard++) {
    const { shard: real } = bucket.line(shard);
    if (!asked.has(real)) others.add(real);
  }
  const drawn: number[] = [];
  for (const pool = [...others]; pool.length > 0 && drawn.length < MOST_SHARDS_ASKED - 1;) {
    drawn.push(...pool.splice(Math.floor(bucket.random() * pool.length), 1));
  }
  const tuning = tuningOf(call);
  const hasRoom = (shard: number): number => (bucket.line(shard).hasRoom(entry, tuning) ? 0 : 1);
  return drawn.toSorted((a, b) => hasRoom(a) - hasRoom(b));
}

async function askShard(
  asking: Asking,
  shard: number,
  entry: AskEntry,
): Promise<{ readonly outcome: LevelOutcome; readonly line: ShardLine }> {
  const { bucket, call, deadline } = asking;
  const tuning = tuningOf(call);
  for (;;) {
    const line = bucket.line(shard);
    const result = line.recall(entry, tuning) ?? (await line.submit(entry, deadline, tuning, call.signal));
    if (result.kind === 'no-shard') {
      bucket.noteMissing(line.shard);
      continue;
    }
    if (!isOutcome(result)) throw new TypeError(`An ask cannot end as ${result.kind}`);
    bucket.tendSoon(line, call, deadlineIn(TEND_WITHIN_MS));
    return { outcome: placed(result, line.shard, bucket.count), line };
  }
}

function isOutcome(result: EntryResult): result is LevelOutcome {
  return result.kind !== 'done' && result.kind !== 'extended' && result.kind !== 'no-shard';
}

function placed(outcome: LevelOutcome, shard: number, count: number): LevelOutcome {
  if (outcome.kind !== 'granted' || (shard === 0 && count === 1)) return outcome;
  const taken = outcome.answer.verdicts.map(({ limit, requestedMilli }) => ({
    name: limit.name,
    milli: requestedMilli,
  }));
  return { ...outcome, answer: { ...outcome.answer, place: [placeOf(shard, taken)] } };
}

function entryOf({ call, leaseId }: Pick<Asking, 'call' | 'leaseId'>, level: LevelAsk, counts: boolean): AskEntry {
  return { kind: 'ask', level, leaseId, nowMs: call.nowMs, counts };
}

/** Never on this shard, though the whole bucket could hold it. */
function exceedsShare({ verdicts }: LevelAnswer, level: LevelAsk): boolean {
  const short = verdicts.filter(({ waitMs }) => waitMs !== 0);
  return (
    short.some(({ waitMs }) => waitMs === null) &&
    short.every(({ limit, requestedMilli }) => {
      const whole = level.limits.find(({ name }) => name === limit.name) ?? limit;
      return requestedMilli <= whole.capacityMilli;
    })
  );
}

function longestWait({ verdicts }: LevelAnswer): number {
  return Math.max(0, ...verdicts.map(({ waitMs }) => waitMs ?? Number.POSITIVE_INFINITY));
}

/** Shard after shard, each as much as it has; if that is not enough, or one of them fails, everything goes back. */
async function takeAcross(asking: Asking): Promise<LevelOutcome> {
  const { bucket, level, call } = asking;
  const places: ShardPlace[] = [];
  const granted: LevelAnswer[] = [];
  let owed: readonly Amount[] = level.asks;
  // Slots may have been given back at any time since they were seen.
  const takesSlots = level.limits.some(({ name, kind }) => kind === 'concurrent' && amountOf(level.asks, name));
  await bucket.lookAtAll(call.nowMs, asking.deadline, takesSlots ? 0 : tuningOf(call).denyCacheMs);
  try {
    for (const shard of bucket.realShards()) {
      const line = bucket.line(shard);
      const part = owed.map(({ name, milli }) => ({ name, milli: min(milli, availableOf(line, name, call.nowMs)) }));
      if (part.every(({ milli }) => milli <= 0)) continue;
      const asks = part.filter(({ milli }) => milli > 0);
      const entry = entryOf(asking, { ...level, asks, holder: holderOf(level, asks) }, places.length === 0);
      const { outcome } = await askShard(asking, shard, entry);
      if (outcome.kind !== 'granted') continue;
      places.push(placeOf(line.shard, asks));
      granted.push(outcome.answer);
      owed = owed.map(({ name, milli }) => ({ name, milli: sub(milli, amountOf(asks, name) ?? 0) }));
      if (owed.every(({ milli }) => milli === 0)) {
        return { kind: 'granted', answer: { ...together(level, granted), place: places } };
      }
    }
  } catch (error) {
    await undoParts(asking, granted, places);
    throw error;
  }
  await undoParts(asking, granted, places);
  return { kind: 'denied', answer: refusal(asking), remembered: false };
}

/** A part that cannot be given back stays taken: the strict side. It is told, because nobody else would know. */
async function undoParts(
  asking: Asking,
  granted: readonly LevelAnswer[],
  places: readonly ShardPlace[],
): Promise<void> {
  const { call, level } = asking;
  if (places.length === 0) return;
  // The time of the call may be over: what it took must go back all the same.
  const deadline = Math.max(asking.deadline, deadlineIn(call.timeoutMs));
  try {
    await undoLevel({ ...asking, deadline }, { ...together(level, granted), place: places });
  } catch (error) {
    call.tuning?.onError?.(error, 'giving back what an ask over several shards had taken');
  }
}

function holderOf({ holder }: LevelAsk, asks: readonly Amount[]): LevelAsk['holder'] {
  if (holder === null) return null;
  const within = (amounts: readonly Amount[]) =>
    amounts.flatMap(({ name }) => asks.filter((amount) => amount.name === name));
  return { ...holder, slots: within(holder.slots), rates: holder.rates === null ? null : within(holder.rates) };
}

/** With what expired holders have. A debt of one shard takes nothing from the others. */
function availableOf(line: ShardLine, name: string, nowMs: number): Int {
  const image = line.image === null ? null : asReclaimed(line.image, nowMs);
  const account = image?.limits.find(({ limit }) => limit.name === name);
  if (image === null || account === undefined) return 0;
  const effective = effectiveTokens(account.rate, account.tokensMilli, credit(account.rate, image.baseMs, nowMs));
  if (effective < 0) return 0;
  // Slots are whole.
  return account.limit.kind === 'concurrent' ? sub(effective, Number(effective) % MILLI) : effective;
}

/** One answer for what was taken in parts: as much as they are together, which may be less than was asked. */
function together(level: LevelAsk, answers: readonly LevelAnswer[]): LevelAnswer {
  const verdicts = level.asks.flatMap(({ name }): Verdict[] => {
    const parts = answers.flatMap((answer) => answer.verdicts.filter(({ limit }) => limit.name === name));
    const [first] = parts;
    if (first === undefined) return [];
    const effectiveMilli = parts.reduce<Int>((sum, part) => add(sum, part.effectiveMilli), 0);
    const requestedMilli = parts.reduce((sum, part) => sum + part.requestedMilli, 0);
    return [{ ...first, effectiveMilli, requestedMilli }];
  });
  return { verdicts, configIsOlder: answers.some(({ configIsOlder }) => configIsOlder) };
}

/** What all shards have together, and how long the whole bucket needs for the rest. */
function refusal({ bucket, level, call }: Asking): LevelAnswer {
  const verdicts = level.asks.flatMap(({ name, milli }): Verdict[] => {
    const limit = level.limits.find((candidate) => candidate.name === name);
    if (limit === undefined) return [];
    const lines = bucket.realShards().map((shard) => bucket.line(shard));
    const effectiveMilli = availableAt(lines, name, call.nowMs);
    const missing = effectiveMilli < milli;
    const waitMs = !missing ? 0 : limit.kind === 'rate' ? waitAcross(lines, name, milli, call.nowMs) : 1_000;
    return [{ limit, creditedMilli: 0, effectiveMilli, requestedMilli: Number(milli), waitMs }];
  });
  const refuses = verdicts.some(({ waitMs }) => waitMs !== 0);
  // Somebody else took it between two shards: soon again.
  return {
    verdicts: refuses ? verdicts : verdicts.map((verdict) => ({ ...verdict, waitMs: 1 })),
    configIsOlder: false,
  };
}

function availableAt(lines: readonly ShardLine[], name: string, atMs: number): Int {
  return lines.reduce<Int>((sum, line) => add(sum, availableOf(line, name, atMs)), 0);
}

/** The least wait after which all shards have it together: those that are full meanwhile wait for the others. */
function waitAcross(lines: readonly ShardLine[], name: string, milli: Int, nowMs: number): number {
  let tooEarlyMs = 0;
  let enoughMs = Math.max(1, ...lines.map((line) => fullAfterMs(line, name, nowMs)));
  while (enoughMs - tooEarlyMs > 1) {
    const middleMs = Math.floor((tooEarlyMs + enoughMs) / 2);
    if (availableAt(lines, name, nowMs + middleMs) >= milli) enoughMs = middleMs;
    else tooEarlyMs = middleMs;
  }
  return enoughMs;
}

function fullAfterMs({ image }: ShardLine, name: string, nowMs: number): number {
  const account = image?.limits.find(({ limit }) => limit.name === name);
  if (image === null || account === undefined) return 0;
  const { rate, tokensMilli } = account;
  return waitForTokens(rate, tokensMilli, image.baseMs, rate.capacityMilli, nowMs) ?? 0;
}

/** Gives back a grant as if it had never been, on the very shards. */
export async function undoLevel(
  { bucket, call, level, leaseId, deadline }: Asking,
  answer: LevelAnswer,
): Promise<void> {
  const deltas = answer.verdicts
    .filter(({ limit }) => limit.kind === 'rate')
    .map(({ limit, requestedMilli }) => ({ name: limit.name, milli: -requestedMilli }));
  const holder = level.holder === null ? 'none' : 'release';
  const change: LevelChange = { ...level, deltas, totals: null, holder, place: answer.place };
  const changing = { bucket, call, level: change, leaseId: leaseId ?? '', deadline };
  await changeLevel(changing, true);
}
