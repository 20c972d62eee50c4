import type { Awaitable, Call, ConsumeOutcome, ConsumeRequest, LevelAnswer, LevelAsk } from '../../../backend.js';
import { withAmount } from '../../../core/bucket/at-most.js';
import { CONTENDED_RETRY_MS } from '../../../core/bucket/decide.js';
import { concludeAt } from '../../../core/bucket/conclude.js';
import { CONFIG_REREAD_MS } from '../../../core/config/config.js';
import type { EpochMs } from '../../../core/units.js';
import { takeAtomically } from './atomic.js';
import { givenBy } from './given-by.js';
import { isShortOf, startKeeping, youngImages } from './bucket-images.js';
import { type BucketCache, tuningOf } from './bucket-shards.js';
import { backOffMs, type Deadline, deadlineIn, sleep, timeLeftMs } from '../../../machine-time.js';
import { judgeLevel } from '../bucket/judge-level.js';
import { revokeGrant } from './revoke-grant.js';
import { hasRoom } from './shard.js';
import { undoLevel } from './change-level.js';
import { mayHaveLanded } from '../bucket/group/entries.js';
import type { LevelOutcome } from './take-across.js';
import type { ShardImage } from '../table/items.js';
import { recallLevel, takeLevel } from './take-level.js';

interface Consuming {
  readonly buckets: BucketCache;
  readonly call: Call;
  readonly request: ConsumeRequest;
  readonly deadline: Deadline;
}

/** Takes from all levels or from none. */
export function consume(buckets: BucketCache, call: Call, request: ConsumeRequest): Awaitable<ConsumeOutcome> {
  const consuming = { buckets, call, request, deadline: deadlineIn(call.timeoutMs) };
  if (request.levels.length > 1) {
    const { atMost } = request;
    // A transaction agrees on the amount in its dry run.
    if (atMost !== undefined && request.atomic !== true) return takeCut(consuming, atMost);
    return takeCascade(consuming).then(({ outcome }) => outcome);
  }
  const asking = askingOf(consuming, request.levels[0] as LevelAsk);
  // A take from one shard is one write, which is atomic. Only a take from several shards needs a transaction.
  const outcome = takeLevel(request.atomic === true ? { ...asking, takeAcross: takeWhole(consuming) } : asking);
  return outcome instanceof Promise
    ? outcome.then((late) => outcomeOfOne(late, call.nowMs))
    : outcomeOfOne(outcome, call.nowMs);
}

/** Takes from several shards of the only level, in one transaction. */
function takeWhole({ buckets, call, request, deadline }: Consuming): () => Promise<LevelOutcome> {
  return async () => {
    const [level] = request.levels as readonly [LevelAsk];
    const bucket = buckets.of(call.namespaceId, level.entityId, level.resource);
    const asked = { call, leaseId: request.leaseId, deadline, levels: [{ level, bucket }] };
    const [outcome] = await takeAtomically(asked);
    return outcome ?? { kind: 'contended' };
  };
}

function askingOf({ buckets, call, request, deadline }: Consuming, level: LevelAsk) {
  const bucket = buckets.of(call.namespaceId, level.entityId, level.resource);
  return { call, bucket, level, leaseId: request.leaseId, deadline };
}

function outcomeOfOne(outcome: LevelOutcome, nowMs: EpochMs): ConsumeOutcome {
  switch (outcome.kind) {
    case 'granted':
      return { kind: 'granted', levels: [outcome.answer] };
    case 'denied':
      return denial([outcome.answer], outcome.remembered, nowMs);
    case 'unheld':
    case 'crowded':
      return refusal(outcome, [outcome.answer]);
    case 'contended':
      return { kind: 'denied', reason: 'contended', retryAfterMs: CONTENDED_RETRY_MS, levels: [] };
    case 'id-taken':
      return outcome;
  }
}

function refusal({ kind }: Refused, levels: readonly LevelAnswer[]): ConsumeOutcome {
  return kind === 'unheld'
    ? { kind: 'denied', reason: 'contended', retryAfterMs: CONFIG_REREAD_MS, levels }
    : { kind: 'denied', reason: 'contended', retryAfterMs: CONTENDED_RETRY_MS, levels, crowded: true };
}

function denial(levels: readonly LevelAnswer[], remembered: boolean, nowMs: EpochMs): ConsumeOutcome {
  const conclusion = concludeAt(levels, nowMs);
  // The levels were judged one after the other, so the cause of the refusal may have passed.
  if (conclusion.granted) return { kind: 'denied', reason: 'exhausted', retryAfterMs: 1, levels };
  const { reason, retryAfterMs } = conclusion;
  return { kind: 'denied', reason, retryAfterMs, levels, ...(remembered ? { remembered } : {}) };
}

/**
 * Takes all levels in parallel if all are known to have room. Otherwise takes them one by one: first the levels that
 * are likely to refuse, then from the entity up, so that a refused child never takes from the parent that its siblings
 * share. If one level refuses, what was taken is given back before the denial is returned.
 */
async function takeCascade(consuming: Consuming): Promise<Cascade> {
  const { request, call } = consuming;
  const outcomes = recallDenials(consuming) ?? (await takeLevels(consuming));
  if (outcomes.length === request.levels.length && outcomes.every(isGranted)) {
    return { outcome: { kind: 'granted', levels: outcomes.map(({ answer }) => answer) } };
  }
  // A transaction that was not written took nothing.
  const isUndone = request.atomic === true || (await undo(consuming, outcomes));
  for (const outcome of outcomes) if (outcome instanceof Failed) throw outcome.error;
  const isInDoubt = !isUndone || outcomes.some(mayHaveLanded);
  for (const outcome of outcomes) {
    if (endsWithoutAnswer(outcome)) return { outcome: outcomeOfOne(outcome, call.nowMs), isInDoubt };
  }
  const { levels, read, isPartial } = await verdictsOfAll(consuming, outcomes);
  for (const outcome of outcomes) {
    if (endsWithoutVerdict(outcome)) return { outcome: refusal(outcome, levels), isInDoubt };
  }
  const remembered = outcomes.every((outcome) => outcome === UNASKED || (isDenied(outcome) && outcome.remembered));
  return { outcome: denial(levels, !read && remembered, call.nowMs), isInDoubt, isPartial };
}

interface Cascade {
  readonly outcome: ConsumeOutcome;
  /** What was taken may still be given back, or a write may still land, under this lease id. */
  readonly isInDoubt?: boolean;
  /** A level could not be read. Its answer has no verdicts. */
  readonly isPartial?: boolean;
}

/**
 * Takes the same amount of the limit that may be cut from all levels: the least that their images can give. Each attempt
 * is a cascade with whole amounts, which is given back as a whole if a level refuses. A refused attempt leaves images
 * from which the next amount follows.
 */
async function takeCut(consuming: Consuming, atMost: string): Promise<ConsumeOutcome> {
  const { request, call, deadline } = consuming;
  const { maxRetries } = tuningOf(call);
  for (let attempt = 0; ; attempt++) {
    const given = request.levels.map((level) =>
      givenBy(askingOf(consuming, level).bucket, level, atMost, call.nowMs, attempt > 0),
    );
    const levels = request.levels.map((level) => withAmount(level, atMost, Math.min(...given)));
    const { outcome, isInDoubt, isPartial } = await takeCascade({ ...consuming, request: { ...request, levels } });
    if (outcome.kind !== 'denied' || outcome.reason === 'contended' || outcome.reason === 'paused') return outcome;
    if (isPartial === true) return outcome;
    // The wait is that for one token, not for the amount that was tried.
    const judged = await verdictsOfAll(consuming, []);
    if (judged.isPartial) return outcome;
    const remembered = outcome.remembered === true && !judged.read;
    if (!concludeAt(judged.levels, call.nowMs).granted) return denial(judged.levels, remembered, call.nowMs);
    if (isInDoubt === true) return { kind: 'id-taken' };
    const { random } = askingOf(consuming, request.levels[0] as LevelAsk).bucket.executor;
    const waitMs = attempt === 0 ? 0 : backOffMs(attempt, random);
    if (attempt >= maxRetries || timeLeftMs(deadline) <= waitMs) return outcomeOfOne({ kind: 'contended' }, call.nowMs);
    if (waitMs > 0) await sleep(waitMs);
  }
}

/** A denial from the deny cache saves taking from the other levels and giving back. */
function recallDenials(consuming: Consuming): readonly Taken[] | null {
  const recalled = consuming.request.levels.map((level) => {
    const asking = askingOf(consuming, level);
    const outcome = recallLevel(asking);
    if (outcome !== null) noteRefusal(asking, outcome);
    return outcome ?? UNASKED;
  });
  return recalled.some(isDenied) ? recalled.map((outcome) => (isDenied(outcome) ? outcome : UNASKED)) : null;
}

async function takeLevels(consuming: Consuming): Promise<readonly Taken[]> {
  const { call, request, deadline } = consuming;
  if (request.atomic === true) {
    const levels = request.levels.map((level) => ({ level, bucket: askingOf(consuming, level).bucket }));
    return takeAtomically({ call, leaseId: request.leaseId, deadline, levels });
  }
  const doubtful = doubtfulLevels(consuming);
  const every = request.levels.map((_, at) => at);
  return doubtful.length === 0 && haveRoom(consuming, every)
    ? takeAll(consuming, [], every)
    : takeOneByOne(consuming, doubtful);
}

class Failed {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

const UNASKED = { kind: 'unasked' } as const;

type Taken = LevelOutcome | Failed | typeof UNASKED;

function isGranted(outcome: Taken | undefined): outcome is Extract<LevelOutcome, { readonly kind: 'granted' }> {
  return outcome !== undefined && !(outcome instanceof Failed) && outcome.kind === 'granted';
}

function endsWithoutAnswer(outcome: Taken): outcome is LevelOutcome {
  return !(outcome instanceof Failed) && (outcome.kind === 'id-taken' || outcome.kind === 'contended');
}

/** No limit refused. The answer says which level has a config that the client must read again. */
function endsWithoutVerdict(outcome: Taken | undefined): outcome is Refused {
  if (outcome === undefined || outcome instanceof Failed) return false;
  return outcome.kind === 'unheld' || outcome.kind === 'crowded';
}

type Refused = Extract<LevelOutcome, { readonly kind: 'unheld' | 'crowded' }>;

/**
 * The levels that are likely to refuse, the likeliest first: those whose cached balance is too small, then those that
 * refused most recently. What is taken before them would only be given back.
 */
function doubtfulLevels(consuming: Consuming): readonly number[] {
  const { call, request } = consuming;
  return request.levels
    .map((level, at) => {
      const { bucket } = askingOf(consuming, level);
      return { at, isShort: isShortOf(bucket, level.asks, call.nowMs), refusedAtMs: bucket.refusedAtMs };
    })
    .filter(({ isShort, refusedAtMs }) => isShort || refusedAtMs !== null)
    .toSorted(
      (a, b) =>
        Number(b.isShort) - Number(a.isShort) ||
        (b.refusedAtMs ?? Number.NEGATIVE_INFINITY) - (a.refusedAtMs ?? Number.NEGATIVE_INFINITY) ||
        a.at - b.at,
    )
    .map(({ at }) => at);
}

function haveRoom(consuming: Consuming, levels: readonly number[]): boolean {
  return levels.every((at) => anyHasRoom(askingOf(consuming, consuming.request.levels[at] as LevelAsk)));
}

function anyHasRoom({ bucket, call, level, leaseId }: ReturnType<typeof askingOf>): boolean {
  const entry = { kind: 'ask', level, leaseId, nowMs: call.nowMs, counts: true } as const;
  return bucket.all().some((shard) => hasRoom(shard, entry));
}

/** Takes further levels in parallel and adds their outcomes. */
async function takeAll(
  consuming: Consuming,
  outcomes: readonly Taken[],
  levels: readonly number[],
): Promise<readonly Taken[]> {
  const taken = [...outcomes];
  await Promise.all(levels.map(async (at) => (taken[at] = await takeOne(consuming, at))));
  return taken;
}

/** Stops at the first level that does not grant. */
async function takeOneByOne(consuming: Consuming, first: readonly number[]): Promise<readonly Taken[]> {
  const { levels } = consuming.request;
  const outcomes: Taken[] = levels.map(() => UNASKED);
  const rest = levels.map((_, at) => at).filter((at) => !first.includes(at));
  for (const at of first) {
    outcomes[at] = await takeOne(consuming, at);
    if (!isGranted(outcomes[at])) return outcomes;
  }
  if (haveRoom(consuming, rest)) return takeAll(consuming, outcomes, rest);
  for (const at of rest) {
    outcomes[at] = await takeOne(consuming, at);
    if (!isGranted(outcomes[at])) break;
  }
  return outcomes;
}

async function takeOne(consuming: Consuming, at: number): Promise<Taken> {
  const asking = askingOf(consuming, consuming.request.levels[at] as LevelAsk);
  try {
    const outcome = await takeLevel(asking);
    noteRefusal(asking, outcome);
    return outcome;
  } catch (error) {
    return new Failed(error);
  }
}

/**
 * A grant alone does not clear the refusal: with many processes the next ask would be refused again. Room for another
 * ask of the same size does.
 */
function noteRefusal(asking: ReturnType<typeof askingOf>, outcome: LevelOutcome): void {
  const { bucket, call } = asking;
  if (outcome.kind === 'denied') bucket.refusedAtMs = call.nowMs;
  else if (outcome.kind === 'granted' && bucket.refusedAtMs !== null && anyHasRoom(asking)) bucket.refusedAtMs = null;
}

/**
 * A part that cannot be given back is retried in the background if it has a holder, which shows whether it is still
 * taken. Without a holder it stays taken, which is the strict side. It is reported to `onError`, because nothing else
 * shows it. False: a part could not be given back yet.
 */
async function undo(consuming: Consuming, outcomes: readonly Taken[]): Promise<boolean> {
  const { call, request } = consuming;
  let isUndone = true;
  await Promise.all(
    outcomes.map(async (outcome, at) => {
      const level = request.levels[at];
      if (level === undefined || !isGranted(outcome)) return;
      // The deadline of the call may have passed. What it took must be given back anyway.
      const deadline = Math.max(consuming.deadline, deadlineIn(call.timeoutMs));
      const asking = askingOf(consuming, level);
      try {
        await undoLevel({ ...asking, deadline }, outcome.answer);
      } catch (error) {
        isUndone = false;
        if (revokeGrant(asking, outcome.answer)) return;
        call.tuning?.onError?.(error, 'giving back what a refused cascade had taken');
      }
    }),
  );
  return isUndone;
}

interface Judged {
  readonly levels: readonly LevelAnswer[];
  readonly read: boolean;
  readonly isPartial: boolean;
}

/**
 * One answer per level of an ask that is denied. A level that was not asked, or was given back, is judged by its cached
 * images, or read if they are too old. A read that fails changes no denial: the outage policy could grant the ask.
 */
async function verdictsOfAll(consuming: Consuming, outcomes: readonly Taken[]): Promise<Judged> {
  const { call, request } = consuming;
  const seen = request.levels.map((level, at) =>
    isDenied(outcomes[at]) || endsWithoutVerdict(outcomes[at])
      ? []
      : youngImages(askingOf(consuming, level).bucket, call.nowMs, tuningOf(call).denyCacheMs),
  );
  const unseen = request.levels.filter((_, at) => seen[at] === null);
  const keepers = unseen.map((level) => startKeeping(askingOf(consuming, level).bucket, call.nowMs));
  const images = unseen.length === 0 ? [] : await readLevels(consuming, unseen);
  // Cached, so that the next denial needs no read.
  for (const [at, keep] of keepers.entries()) if (images !== null) keep(images[at] ?? []);
  const levels = request.levels.map((level, at) => {
    const outcome = outcomes[at];
    if (isDenied(outcome) || endsWithoutVerdict(outcome)) return outcome.answer;
    const shards = seen[at] ?? (images === null ? null : (images[unseen.indexOf(level)] ?? []));
    return shards === null ? UNREAD : judgeLevel(shards, level, () => level.asks, call.nowMs);
  });
  return { levels, read: unseen.length > 0, isPartial: images === null };
}

const UNREAD: LevelAnswer = { verdicts: [], configIsOlder: false };

/** null: the read failed. */
async function readLevels(
  { buckets, call, deadline }: Consuming,
  levels: readonly LevelAsk[],
): Promise<readonly (readonly ShardImage[])[] | null> {
  try {
    return await buckets.read(call.namespaceId, levels, deadline);
  } catch (error) {
    call.tuning?.onError?.(error, 'reading the levels of a denied ask');
    return null;
  }
}

function isDenied(outcome: Taken | undefined): outcome is Extract<LevelOutcome, { readonly kind: 'denied' }> {
  return outcome !== undefined && !(outcome instanceof Failed) && outcome.kind === 'denied';
}
