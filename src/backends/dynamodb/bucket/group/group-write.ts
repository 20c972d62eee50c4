import type { LevelRef } from '../../../../backend.js';
import { BackendUnavailable } from '../../../../core/errors.js';
import type { Limit } from '../../../../core/limit.js';
import { isRunning } from '../../../../core/pause.js';
import type { EpochMs } from '../../../../core/units.js';
import { type ShardImage, writtenAtMs } from '../../table/items.js';
import { applyShardWrite, buildShardWrite, correctVerdicts, needsTtl } from '../shard-write.js';
import type { Entry, EntryResult } from './entries.js';
import type { WriteAnswer } from '../executor.js';
import {
  type CachedImage,
  type EntryAnswer,
  type EntryOutcome,
  type Group,
  type GroupAnswer,
  type GroupState,
  type GroupStep,
  type Purpose,
  putShadowsAside,
} from './group-state.js';
import { newBucketImage, planCreation } from '../new-bucket.js';
import { type GroupPlan, newestLevel, planGroup } from './plan-group.js';
import { RefundLost } from './refund-lost.js';
import { changesSlots } from '../settle/settle-all.js';
import { addTtl, settleOne } from '../settle/settle-one.js';
import {
  addUnanswered,
  ALL_ANSWERED,
  asSent,
  landedResults,
  mayHaveRefunded,
  releasedResults,
  type SentWrite,
} from './unanswered.js';
import { buildCreate } from '../writes/create.js';
import type { Creation, Update } from '../writes/record-write.js';

/** How often a write that got no answer is sent again. Beyond this the store is out, not slow. */
const MAX_RESENDS = 2;

/**
 * Writes a group until each of its entries has an answer. A refused write returns the stored record, and the group is
 * planned again from it, with the same `now` and a new write id. Pure: the caller performs each action and passes its
 * answer to `step`.
 */
export function startGroup(group: Group, cached: CachedImage): GroupStep {
  const state: GroupState = {
    group,
    ...cached,
    open: group.entries.map((_, index) => index),
    unanswered: ALL_ANSWERED,
    refusals: 0,
    resends: 0,
    idleMs: 0,
    purpose: { kind: 'maintain' },
  };
  try {
    return plan(state);
  } catch (error) {
    return endUnplanned(state, error);
  }
}

/** The next action, after the answer to the last one. Never throws, because every entry must get an answer. */
export function step(state: GroupState, answer: GroupAnswer): GroupStep {
  try {
    return afterAnswer(state, answer);
  } catch (error) {
    const { purpose } = state;
    const isOfGroup = answer.kind === 'sent' && purpose.kind === 'group';
    // The write may have landed. Its holders are revoked, and its refunds are not repeated.
    return endUnplanned(isOfGroup ? noteUnanswered(state, { ...purpose.sent, id: answer.id }, error) : state, error);
  }
}

/** Ends a group on a record that cannot be planned on, such as one with a number that this code never writes. */
function endUnplanned(state: GroupState, error: unknown): GroupStep {
  return { ...fail(state, error), action: { kind: 'done', forget: true } };
}

function afterAnswer(state: GroupState, answer: GroupAnswer): GroupStep {
  switch (answer.kind) {
    case 'read':
      return afterRead(state, answer.image);
    case 'sent':
      return afterWrite(state, answer.id, answer.answer);
    case 'settled-all':
      return afterSettleAll(state, answer.isDone);
    case 'paused':
      return plan(state);
    case 'out-of-time': {
      const error = state.purpose.kind === 'pause' ? state.purpose.error : null;
      return fail(state, error ?? new BackendUnavailable('Writing a bucket: too many writers at once', 'contended'));
    }
    case 'failed':
      return fail(state, answer.error);
  }
}

/** The image that an answer shows; undefined if it shows none. */
export function shownBy(answer: GroupAnswer): ShardImage | null | undefined {
  if (answer.kind === 'read') return answer.image;
  if (answer.kind !== 'sent') return undefined;
  const { answer: written } = answer;
  return written.kind === 'written' || written.kind === 'refused' ? written.image : undefined;
}

/** The rules that the record may have. */
export function knownLimits(state: GroupState): readonly Limit[] {
  return newestLevel(openEntries(state))?.limits ?? state.image?.limits.map(({ limit }) => limit) ?? [];
}

function plan(state: GroupState): GroupStep {
  const { image, open, trust, unanswered } = state;
  if (open.length === 0) return finish(state, []);
  const newImage = image === null ? imageOfNew(state) : null;
  const planned = image ?? newImage;
  if (planned === null) return read(state, { kind: 'find' });
  const next = planOn(state, planned, image === null);
  // After a write that got no answer, only a read shows whether it landed.
  const isUnproven = next.kind === 'answer' && unanswered.writes.length > 0 && trust !== 'exact';
  if (next.kind === 'read' || isUnproven) return read(state, { kind: 'prove' });
  switch (next.kind) {
    case 'answer':
      return finish(state, next.results);
    case 'settle':
      return settle(state, planned, next.level);
    case 'rebase':
      return settle(state, planned, null);
    case 'reclaim':
      return maintain(state, (own) => buildShardWrite(state.group.ns, planned, next.write, { own, unanswered: [] }));
    case 'write':
      return write(state, planned, next);
  }
}

/** null: only shard 0 is ever created, and only for an entry that brings the limits. */
function imageOfNew(state: GroupState): ShardImage | null {
  const { key, nowMs } = state.group;
  const level = newestLevel(openEntries(state));
  return key.shard > 0 || level === null ? null : newBucketImage(key, level, nowMs);
}

function planOn(state: GroupState, image: ShardImage, isNew: boolean): GroupPlan {
  const { nowMs, lifeFactor } = state.group;
  const entries = openEntries(state);
  if (!isNew && fences(entries, image.baseMs)) return { kind: 'rebase' };
  const trust = isNew ? 'exact' : state.trust;
  const withoutRefunds = state.unanswered.writes.length > 0;
  const { judgement } = state;
  const planned = planGroup(image, entries, { nowMs, trust, lifeFactor, withoutRefunds, judgement });
  if (!isNew || planned.kind !== 'answer') return planned;
  // There is nothing to create, and it is not known whether the record exists: a read must show it. A cached absence denies
  // asks only: another process may have created the record with the holder that a change looks for.
  const isCertain = state.trust === 'exact' || (state.isAbsent && entries.every(({ kind }) => kind === 'ask'));
  if (!isCertain) return { kind: 'read' };
  if (!fences(entries, null)) return planned;
  return { kind: 'write', write: planCreation(image, nowMs, lifeFactor), results: planned.results };
}

function write(
  state: GroupState,
  image: ShardImage,
  { write: change, results }: Extract<GroupPlan, { readonly kind: 'write' }>,
): GroupStep {
  const { group, open, unanswered } = state;
  const sent = { seen: state.image, write: change, open, results };
  const build = (own: string): Creation | Update =>
    state.image === null
      ? buildCreate(group.ns, { ...applyShardWrite(image, change, own), writeUnits: 1 })
      : buildShardWrite(group.ns, image, change, { own, unanswered: unanswered.writes.map(({ id }) => id) });
  return { state: { ...state, purpose: { kind: 'group', sent } }, action: { kind: 'send', build }, answers: [] };
}

function maintain(state: GroupState, build: (writeId: string) => Update): GroupStep {
  return { state: { ...state, purpose: { kind: 'maintain' } }, action: { kind: 'send', build }, answers: [] };
}

function read(state: GroupState, purpose: Purpose): GroupStep {
  return { state: { ...state, purpose }, action: { kind: 'read' }, answers: [] };
}

/** Settles the shard to the rules of a level. null: to its own rules, at a new base. */
function settle(state: GroupState, image: ShardImage, level: LevelRef | null): GroupStep {
  if (level !== null && image.shardCount > 1 && changesSlots(image, level)) {
    const purpose = { kind: 'settle-all', image, level } as const;
    return { state: { ...state, purpose }, action: { kind: 'settle-all', level }, answers: [] };
  }
  return settleAlone(state, image, level);
}

function settleAlone(state: GroupState, image: ShardImage, level: LevelRef | null): GroupStep {
  const { ns, nowMs, lifeFactor } = state.group;
  return maintain(state, (writeId) => settleOne({ ns, image, nowMs, lifeFactor, writeId }, level));
}

function afterSettleAll(state: GroupState, isDone: boolean): GroupStep {
  if (isDone || state.purpose.kind !== 'settle-all') return read(state, { kind: 'maintain' });
  return settleAlone(state, state.purpose.image, state.purpose.level);
}

function afterRead(before: GroupState, image: ShardImage | null): GroupStep {
  const state = see(before, image);
  if (state.purpose.kind === 'find' && image === null) {
    const results = state.open.map(() => ({ kind: 'no-shard' }) as const);
    return finish(state, results);
  }
  if (state.purpose.kind !== 'prove') return plan(state);
  return finishIfLanded(state, null) ?? answerReleased(state, state.unanswered.writes, plan);
}

function afterWrite(state: GroupState, id: string, answer: WriteAnswer): GroupStep {
  const { purpose } = state;
  if (purpose.kind === 'add-ttl') return afterTtl(state, answer);
  switch (answer.kind) {
    case 'written':
      return purpose.kind === 'group'
        ? afterLanding(state, purpose.sent, answer.image)
        : plan(see(state, answer.image));
    case 'refused': {
      const seen = see(state, answer.image);
      return purpose.kind === 'group'
        ? afterRefusedGroup(seen, { ...purpose.sent, id })
        : afterRefusal(seen, 'refused', null);
    }
    case 'busy':
      return afterRefusal(state, 'busy', answer.cause === 'throttled' ? answer.error : null);
    case 'no-answer': {
      const isInDoubt = purpose.kind === 'group' && !answer.unsent;
      return resend(isInDoubt ? noteUnanswered(state, { ...purpose.sent, id }, answer.error) : state, answer.error);
    }
    case 'failed':
      return fail(state, answer.error);
  }
}

function afterLanding(
  before: GroupState,
  { seen, write: change, results }: Omit<SentWrite, 'id'>,
  image: ShardImage,
): GroupStep {
  const { nowMs } = before.group;
  const state = see(before, image);
  if (seen === null) return finish(state, results);
  const corrected = correctVerdicts(results, change, seen, image, nowMs);
  return finish({ ...state, idleMs: nowMs - writtenAtMs(seen) }, corrected);
}

function afterRefusedGroup(state: GroupState, sent: SentWrite): GroupStep {
  const landed = finishIfLanded(state, sent);
  if (landed !== null) return landed;
  return answerReleased(state, [...state.unanswered.writes, sent], (rest) => afterRefusal(rest, 'refused', null));
}

/**
 * The last step, if the image proves that an unanswered write landed, or the refused one: a request that was sent twice
 * gets only the answer of the second time.
 */
function finishIfLanded(state: GroupState, refused: SentWrite | null): GroupStep | null {
  const { image, open, group } = state;
  if (image === null) return null;
  const landed = landedResults(state.unanswered, { image, open, refused, inDoubt: group.inDoubt });
  return landed && finish({ ...state, unanswered: landed.unanswered }, landed.results);
}

function noteUnanswered(state: GroupState, sent: SentWrite, error: unknown): GroupState {
  const unanswered = addUnanswered(state.unanswered, sent, state.group.entries, error);
  // It may have landed. Then the stored record differs from the image.
  const entries = asSent(state.group.entries, sent);
  return { ...state, group: { ...state.group, entries }, unanswered, trust: 'guess' };
}

function resend(state: GroupState, error: unknown): GroupStep {
  const resends = state.resends + 1;
  if (resends > MAX_RESENDS) return fail({ ...state, resends }, error);
  return pause({ ...state, resends }, resends, error);
}

/** After a refusal that any write can meet: other writers, or throttling. */
function afterRefusal(state: GroupState, kind: 'refused' | 'busy', error: unknown): GroupStep {
  const refusals = state.refusals + 1;
  const { maxRetries } = state.group;
  const tried = kind === 'refused' && refusals > maxRetries / 2 ? putShadowsAside(state) : state;
  const isOver = refusals > maxRetries && tried === state;
  const given = isOver ? giveUpAsks(state, error) : { state: tried, answers: [] };
  const counted = { ...given.state, refusals };
  // The first refused condition means a stale image. From the second on, other writers are active.
  const next = kind === 'busy' || refusals > 1 ? pause(counted, refusals, error) : plan(counted);
  return { ...next, answers: [...given.answers, ...next.answers] };
}

/**
 * Gives up the asks, which callers can repeat. Corrections must reach the store and are retried until their deadline, and
 * so are asks that no limit can refuse.
 */
function giveUpAsks(state: GroupState, error: unknown): Pick<GroupStep, 'state' | 'answers'> {
  return answerEntries(state, (index) => {
    const entry = state.group.entries[index];
    if (entry?.kind !== 'ask' || (entry.onlyShadows === true && error === null)) return null;
    return error === null ? { kind: 'result', result: { kind: 'contended' } } : { kind: 'error', error };
  });
}

/** Answers the releases that the image shows to have landed, and continues with the other entries. */
function answerReleased(
  state: GroupState,
  sents: readonly SentWrite[],
  proceed: (state: GroupState) => GroupStep,
): GroupStep {
  const results = releasedResults(sents, state.image, state.group.entries, state.open);
  const released = answerEntries(state, (_, at) => {
    const result = results[at] ?? null;
    return result === null ? null : { kind: 'result', result };
  });
  const next = released.state.open.length === 0 ? finish(released.state, []) : proceed(released.state);
  return { ...next, answers: [...released.answers, ...next.answers] };
}

/** Answers some of the open entries; null: the entry stays open. */
function answerEntries(
  state: GroupState,
  answerOf: (index: number, at: number) => EntryOutcome | null,
): Pick<GroupStep, 'state' | 'answers'> {
  const answers: EntryAnswer[] = [];
  const open = state.open.filter((index, at) => {
    const outcome = answerOf(index, at);
    if (outcome !== null) answers.push({ index, outcome, doubt: state.unanswered.doubts.get(index) });
    return outcome === null;
  });
  return answers.length === 0 ? { state, answers } : { state: { ...state, open }, answers };
}

function pause(state: GroupState, attempt: number, error: unknown): GroupStep {
  return { state: { ...state, purpose: { kind: 'pause', error } }, action: { kind: 'pause', attempt }, answers: [] };
}

/** What the store has just returned is exact. */
function see(state: GroupState, image: ShardImage | null): GroupState {
  return { ...state, image, trust: 'exact', isAbsent: image === null };
}

/** Answers all open entries. null: the entry must wait for the next group. */
function finish(state: GroupState, results: readonly (EntryResult | null)[]): GroupStep {
  const { group } = state;
  const { lostRefunds, error } = state.unanswered;
  const { state: finished, answers } = answerEntries(state, (index, at) => {
    const result = results[at] ?? null;
    if (lostRefunds.has(index)) return { kind: 'error', error: new RefundLost(lostRefunds.get(index)) };
    const isUncertain = result === null && mayHaveRefunded(state.unanswered, group.entries[index] as Entry, index);
    if (isUncertain || result?.kind === 'refund-left-out') return { kind: 'error', error: new RefundLost(error) };
    return result === null ? { kind: 'deferred' } : { kind: 'result', result };
  });
  return { ...maybeAddTtl(finished), answers };
}

/** Adds a ttl to a bucket that needs one. Every caller has its answer by now, so a failure is ignored. */
function maybeAddTtl(state: GroupState): GroupStep {
  const { image, group, idleMs } = state;
  // A ttl could remove the bucket, and its pause, before the pause ends.
  if (isRunning(image?.pause, group.nowMs)) return done(state, false);
  if (image?.ttlSec !== null || !needsTtl(image, newestLevel(group.entries)?.lasting, idleMs))
    return done(state, false);
  const { ns, nowMs, lifeFactor } = group;
  const build = (writeId: string): Update => addTtl({ ns, image, nowMs, lifeFactor, writeId });
  return { state: { ...state, purpose: { kind: 'add-ttl' } }, action: { kind: 'send', build }, answers: [] };
}

function afterTtl(state: GroupState, answer: WriteAnswer): GroupStep {
  const isShown = answer.kind === 'written' || answer.kind === 'refused';
  return isShown ? done(see(state, answer.image), false) : done(state, true);
}

function done(state: GroupState, forget: boolean): GroupStep {
  return { state, action: { kind: 'done', forget }, answers: [] };
}

/** Rejects all open entries. */
function fail(state: GroupState, error: unknown): GroupStep {
  const { group, unanswered, resends } = state;
  const { state: failed, answers } = answerEntries(state, (index) => {
    const entry = group.entries[index] as Entry;
    return { kind: 'error', error: mayHaveRefunded(unanswered, entry, index) ? new RefundLost(error) : error };
  });
  return { ...done(failed, resends > 0), answers };
}

function openEntries({ group, open }: GroupState): readonly Entry[] {
  return open.length === group.entries.length ? group.entries : open.map((index) => group.entries[index] as Entry);
}

/** Whether an entry fences writes that require this base (null: that the item does not exist). */
function fences(entries: readonly Entry[], baseMs: EpochMs | null): boolean {
  return entries.some((entry) => entry.kind === 'change' && entry.fences === baseMs);
}
