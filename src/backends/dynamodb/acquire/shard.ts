import type { Awaitable, Tuning } from '../../../backend.js';
import { asPlanned } from '../../../core/bucket/at-most.js';
import { type AskedAmount, decide, fitsAll, refuses, type Verdict } from '../../../core/bucket/decide.js';
import { compareConfig } from '../../../core/config/config.js';
import { BackendUnavailable } from '../../../core/errors.js';
import { isRunning } from '../../../core/pause.js';
import type { EpochMs } from '../../../core/units.js';
import {
  asDoubtful,
  type AskEntry,
  type Doubt,
  type Entry,
  type EntryResult,
  refundsRates,
  type ResultOf,
} from '../bucket/group/entries.js';
import type { Executor } from '../bucket/executor.js';
import type { CachedImage, EntryAnswer, GroupAction, GroupAnswer, GroupState } from '../bucket/group/group-state.js';
import type { Judgement } from '../bucket/group/group-draft.js';
import { planGroup } from '../bucket/group/plan-group.js';
import { joinDoubts } from '../bucket/group/revocation.js';
import { Pressure, type PressureOptions } from '../bucket/pressure.js';
import { backOffMs, type Deadline, deadlineIn, sleep, timeLeftMs } from '../../../machine-time.js';
import type { ShardImage } from '../table/items.js';
import type { ShardKey } from '../table/keys.js';
import { knownLimits, shownBy, startGroup, step } from '../bucket/group/group-write.js';
import { createWriteId } from '../bucket/writes/record-write.js';
import { settleShards } from './settle-shards.js';

interface Queued extends Waiting {
  readonly signal: AbortSignal | undefined;
}

/** Resolves once all callers that have an answer have run. Tests may replace the timers later, but not this one. */
const afterThisTurn = setImmediate;

/** Called for an ask that was not granted although one of its writes may have landed or may still land. */
export type Abandon = (shard: number, ask: AskEntry, doubt: Doubt, tuning: Tuning) => void;

/**
 * One shard of one bucket in this process: its queue, its cached image and its write rate. One group is written at a
 * time. Entries that arrive during a write go into the next group. An idle shard writes at once what arrives in one turn
 * of the event loop.
 */
export class Shard {
  readonly executor: Executor;
  readonly key: ShardKey;
  readonly pressure: Pressure;
  /** Called for an ask that was not granted although one of its writes may have landed or may still land. */
  readonly abandon: (ask: AskEntry, doubt: Doubt, tuning: Tuning) => void;
  #image: ShardImage | null = null;
  #isAbsent = false;
  #seenAtMs: EpochMs = Number.NEGATIVE_INFINITY;
  #judgement: Judgement | null = null;
  #queue: Queued[] = [];
  #busy = false;
  /** The number of refunds under way. A balance from before a refund must not deny. */
  #refunds = 0;

  constructor(executor: Executor, key: ShardKey, options: PressureOptions, abandon: Abandon = () => {}) {
    this.executor = executor;
    this.key = key;
    this.pressure = new Pressure(options);
    this.abandon = (ask, doubt, tuning) => abandon(key.shard, ask, doubt, tuning);
  }

  get number(): number {
    return this.key.shard;
  }

  get image(): ShardImage | null {
    return this.#image;
  }

  get busy(): boolean {
    return this.#busy;
  }

  /** Caches what the store has just returned. null: the shard does not exist. */
  see(image: ShardImage | null, nowMs: EpochMs): void {
    this.#image = image;
    this.#isAbsent = image === null;
    this.#seenAtMs = nowMs;
  }

  /** Caches an image that was read. The answer of a write under way is newer, and replaces it: until then it may fill a gap. */
  keep(image: ShardImage | null, nowMs: EpochMs): void {
    if (!this.#busy || (this.#image === null && image !== null)) this.see(image, nowMs);
  }

  /** The next group starts without an image: its first write, or a read, returns the stored record. */
  forget(): void {
    this.#image = null;
    this.#isAbsent = false;
  }

  cachedAt(nowMs: EpochMs, denyCacheMs: number): CachedImage {
    const isYoung = this.#isYoung(nowMs, denyCacheMs);
    // A balance from before a refund must not deny.
    const trust = isYoung && this.#refunds === 0 ? 'young' : 'guess';
    return { image: this.#image, trust, isAbsent: this.#isAbsent && isYoung, judgement: this.#judgement };
  }

  /** The image, if it was seen within the last `denyCacheMs` and no refund is under way; else null. */
  youngImage(nowMs: EpochMs, denyCacheMs: number): ShardImage | null {
    return this.#refunds === 0 && this.#isYoung(nowMs, denyCacheMs) ? this.#image : null;
  }

  #isYoung(nowMs: EpochMs, denyCacheMs: number): boolean {
    const ageMs = nowMs - this.#seenAtMs;
    return ageMs >= 0 && ageMs < denyCacheMs;
  }

  /** Reads the shard. null: it does not exist. */
  async read(nowMs: EpochMs, deadline: Deadline): Promise<ShardImage | null> {
    const known = this.#image?.limits.map(({ limit }) => limit) ?? [];
    const image = await this.executor.read(this.key, known, deadline);
    this.keep(image, nowMs);
    return image;
  }

  /** What the image says about the asks. null: there is no image. A warm ask is judged once, however often it is asked. */
  judge(asks: readonly AskedAmount[], nowMs: EpochMs): readonly Verdict[] | null {
    if (this.#image === null) return null;
    const { image, asks: judged, nowMs: atMs, verdicts } = this.#judgement ?? {};
    if (image === this.#image && judged === asks && atMs === nowMs && verdicts !== undefined) return verdicts;
    this.#judgement = { image: this.#image, asks, nowMs, verdicts: decide(this.#image, asks, nowMs) };
    return this.#judgement.verdicts;
  }

  /** Whether the bucket is paused as far as the image shows. */
  isPaused(nowMs: EpochMs): boolean {
    return isRunning(this.#image?.pause, nowMs);
  }

  /** A denial from the deny cache; null if the image cannot deny the ask. */
  recall(ask: AskEntry, { denyCacheMs, bucketLifeFactor: lifeFactor }: Tuning): ResultOf<AskEntry> | null {
    const { nowMs, level } = ask;
    // Most asks fit, and skip the full plan below.
    if (!this.isPaused(nowMs) && (this.#refunds > 0 || !this.#isShort(level.asks, nowMs))) return null;
    const { image, trust, judgement } = this.cachedAt(nowMs, denyCacheMs);
    const plan = image && planGroup(image, [ask], { nowMs, trust, lifeFactor, withoutRefunds: false, judgement });
    return plan?.kind === 'answer' ? (plan.results[0] as ResultOf<AskEntry>) : null;
  }

  #isShort(asks: readonly AskedAmount[], nowMs: EpochMs): boolean {
    // The next group meets the image that the write under way returns, so no verdict on this one would be used again.
    if (this.#busy && this.#image !== null) return !fitsAll(this.#image, asks, nowMs);
    return this.judge(asks, nowMs)?.every(fits) === false;
  }

  /** A value and no promise: the deny cache has decided. */
  submit(entry: Entry, deadline: Deadline, tuning: Tuning, signal?: AbortSignal): Awaitable<EntryResult> {
    const recalled = entry.kind === 'ask' ? this.recall(entry, tuning) : null;
    return recalled ?? this.#enqueue(entry, deadline, tuning, signal);
  }

  #enqueue(entry: Entry, deadline: Deadline, tuning: Tuning, signal: AbortSignal | undefined): Promise<EntryResult> {
    const result = new Promise<EntryResult>((resolve, reject) => {
      this.#queue.push({ entry, deadline, signal, tuning, resolve, reject });
    });
    if (!this.#busy) void this.#run();
    if (!givesBack(entry)) return result;
    this.#refunds += 1;
    return result.finally(() => (this.#refunds -= 1));
  }

  async #run(): Promise<void> {
    this.#busy = true;
    // Calls that are made in the same turn of the event loop, as by a queue of waiters, share one write.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      const waitMs = this.#image === null ? 0 : this.pressure.pauseMs(this.executor.random);
      if (waitMs > 0) await sleep(waitMs);
      const group = takeAwaited(this, this.#queue.splice(0));
      if (group.length === 0) continue;
      const deferred = await sendGroup(this, group);
      // The callers run before the next group is formed: they observe the write rate, on which the next pause depends,
      // and what they submit at once shares the next write. A single caller does not wait for others.
      if (group.length > 1 || this.#queue.length > 0) await new Promise((resolve) => afterThisTurn(resolve));
      // Not spread into `unshift`: 140,000 arguments overflow the stack.
      if (deferred.length > 0) this.#queue = (deferred as Queued[]).concat(this.#queue);
    }
    this.#busy = false;
  }
}

/** Rejects the entries that aborted or timed out before they were sent, and returns the others. */
function takeAwaited(shard: Shard, queued: readonly Queued[]): readonly Queued[] {
  // One reading of the clock for all.
  const now = deadlineIn(0);
  return queued.filter((one) => {
    const isAborted = one.signal?.aborted === true;
    if (!isAborted && one.deadline > now) return true;
    rejectWaiting(shard, one, isAborted ? one.signal?.reason : deadlinePassed());
    return false;
  });
}

/** Whether the whole ask fits into the image of the shard, without a settlement before. */
export function hasRoom(shard: Shard, { level, nowMs }: AskEntry): boolean {
  const { image } = shard;
  if (image === null || compareConfig(image, level) === 'settle' || shard.isPaused(nowMs)) return false;
  return shard.judge(level.asks, nowMs)?.every(fits) === true;
}

function fits(verdict: Verdict): boolean {
  return !refuses(verdict);
}

function deadlinePassed(): BackendUnavailable {
  return new BackendUnavailable('The deadline passed before the write was sent', 'timeout');
}

/** Whether the entry gives tokens or slots back. A balance from before it must not deny. */
function givesBack(entry: Entry): boolean {
  if (entry.kind === 'operation') return true;
  if (entry.kind !== 'change') return false;
  return entry.level.holder === 'release' || refundsRates(entry.level);
}

/** One entry of a shard's queue, with the callbacks of its caller. */
export interface Waiting {
  readonly entry: Entry;
  readonly deadline: Deadline;
  readonly tuning: Tuning;
  readonly resolve: (result: EntryResult) => void;
  readonly reject: (error: unknown) => void;
  /** Set once a write that would have granted an ask with a holder got no answer. */
  doubt?: Doubt | undefined;
}

/** Sends the writes of a group until each entry is answered. Returns the entries that must wait for the next group. */
export async function sendGroup(shard: Shard, waiting: readonly Waiting[]): Promise<readonly Waiting[]> {
  const [{ tuning }] = waiting as [Waiting, ...Waiting[]];
  const nowMs = waiting.reduce((latest, { entry }) => Math.max(latest, entry.nowMs), 0);
  const deadline = waiting.reduce((latest, one) => Math.max(latest, one.deadline), 0);
  const entries = waiting.map(entryOf);
  const { maxRetries, bucketLifeFactor: lifeFactor } = tuning;
  const inDoubt = leasesInDoubt(waiting);
  const group = { ns: shard.executor.ns, key: shard.key, entries, nowMs, maxRetries, lifeFactor, inDoubt };
  const cached = shard.cachedAt(nowMs, tuning.denyCacheMs);
  let { state, action, answers } = startGroup(group, cached);
  const deferred: Waiting[] = [];
  for (;;) {
    deliver(shard, answers, waiting, deferred);
    if (action.kind === 'done') {
      if (action.forget) shard.forget();
      return deferred;
    }
    const answer = await perform(shard, state, action, deadline);
    const shown = shownBy(answer);
    if (shown !== undefined) shard.see(shown, nowMs);
    if (answer.kind === 'sent' && answer.answer.kind === 'busy' && answer.answer.hotKey) {
      shard.pressure.markHot();
    }
    ({ state, action, answers } = step(state, answer));
  }
}

/** A write of an earlier group may have granted the ask: it may take no other amount now. */
function entryOf({ entry, doubt }: Waiting): Entry {
  if (entry.kind !== 'ask' || doubt === undefined) return entry;
  const { grants } = doubt;
  return { ...entry, level: asPlanned(entry.level, grants.at(-1)?.answer.verdicts ?? []) };
}

const NONE_IN_DOUBT: ReadonlySet<string> = new Set();

function leasesInDoubt(waiting: readonly Waiting[]): ReadonlySet<string> {
  if (waiting.every(({ doubt }) => doubt === undefined)) return NONE_IN_DOUBT;
  return new Set(waiting.flatMap(({ entry, doubt }) => (doubt === undefined ? [] : (entry.leaseId ?? []))));
}

function deliver(
  shard: Shard,
  answers: readonly EntryAnswer[],
  waiting: readonly Waiting[],
  deferred: Waiting[],
): void {
  for (const { index, outcome, doubt } of answers) {
    const one = waiting[index] as Waiting;
    if (doubt !== undefined) one.doubt = joinDoubts(one.doubt, doubt);
    if (outcome.kind === 'deferred') deferred.push(one);
    else if (outcome.kind === 'error') rejectWaiting(shard, one, outcome.error);
    else resolveWaiting(shard, one, outcome.result);
  }
}

function resolveWaiting(shard: Shard, waiting: Waiting, result: EntryResult): void {
  if (result.kind !== 'granted') abandonIfInDoubt(shard, waiting);
  waiting.resolve(waiting.doubt === undefined ? result : asDoubtful(result));
}

function rejectWaiting(shard: Shard, waiting: Waiting, error: unknown): void {
  abandonIfInDoubt(shard, waiting);
  waiting.reject(error);
}

/** The caller gets no lease, although a write may have granted it. */
function abandonIfInDoubt(shard: Shard, { entry, doubt, tuning }: Waiting): void {
  if (entry.kind === 'ask' && doubt !== undefined) shard.abandon(entry, doubt, tuning);
}

async function perform(
  { executor, key }: Shard,
  state: GroupState,
  action: Exclude<GroupAction, { readonly kind: 'done' }>,
  deadline: Deadline,
): Promise<GroupAnswer> {
  const { nowMs } = state.group;
  try {
    switch (action.kind) {
      case 'send': {
        const id = createWriteId(nowMs, executor.random);
        const answer = await executor.write(key, action.build(id), knownLimits(state), deadline);
        return { kind: 'sent', id, answer };
      }
      case 'read':
        return { kind: 'read', image: await executor.read(key, knownLimits(state), deadline) };
      case 'settle-all':
        return { kind: 'settled-all', isDone: await settleShards({ executor, level: action.level, nowMs, deadline }) };
      case 'pause': {
        const waitMs = backOffMs(action.attempt, executor.random);
        if (timeLeftMs(deadline) <= waitMs) return { kind: 'out-of-time' };
        await sleep(waitMs);
        return { kind: 'paused' };
      }
    }
  } catch (error) {
    return { kind: 'failed', error };
  }
}
