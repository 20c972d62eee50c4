import type { Tuning } from '../../../backend.js';
import { asPlanned } from '../../../core/bucket/at-most.js';
import type { EpochMs } from '../../../core/units.js';
import type { AskEntry, Doubt, Entry, EntryResult } from '../bucket/group/entries.js';
import type { Executor } from '../bucket/executor.js';
import type { Pressure } from '../bucket/pressure.js';
import type { CachedImage, EntryAnswer, GroupAction, GroupAnswer, GroupState } from '../bucket/group/group-state.js';
import { knownLimits, shownBy, startGroup, step } from '../bucket/group/group-write.js';
import { createWriteId } from '../bucket/writes/record-write.js';
import { backOffMs, type Deadline, pause, timeLeftMs } from '../client/deadline.js';
import type { ShardImage } from '../table/items.js';
import type { ShardKey } from '../table/keys.js';
import { settleShards } from './settle-shards.js';

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

/** The shard that a group is written to. */
export interface WrittenShard {
  readonly executor: Executor;
  readonly key: ShardKey;
  cachedAt(nowMs: EpochMs, denyCacheMs: number): CachedImage;
  /** Caches what the store has just returned. */
  see(image: ShardImage | null, nowMs: EpochMs): void;
  forget(): void;
  readonly pressure: Pick<Pressure, 'markHot'>;
  /** An ask was not granted although one of its writes may have landed or may still land. */
  abandon(ask: AskEntry, doubt: Doubt, tuning: Tuning): void;
}

/** Sends the writes of a group until each entry is answered. Returns the entries that must wait for the next group. */
export async function sendGroup(shard: WrittenShard, waiting: readonly Waiting[]): Promise<readonly Waiting[]> {
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
  return { ...entry, level: asPlanned(entry.level, doubt.answer.verdicts) };
}

const NONE_IN_DOUBT: ReadonlySet<string> = new Set();

function leasesInDoubt(waiting: readonly Waiting[]): ReadonlySet<string> {
  if (waiting.every(({ doubt }) => doubt === undefined)) return NONE_IN_DOUBT;
  return new Set(waiting.flatMap(({ entry, doubt }) => (doubt === undefined ? [] : (entry.leaseId ?? []))));
}

function deliver(
  shard: WrittenShard,
  answers: readonly EntryAnswer[],
  waiting: readonly Waiting[],
  deferred: Waiting[],
): void {
  for (const { index, outcome, doubt } of answers) {
    const one = waiting[index] as Waiting;
    if (doubt !== undefined) one.doubt = doubt;
    if (outcome.kind === 'deferred') deferred.push(one);
    else if (outcome.kind === 'error') rejectWaiting(shard, one, outcome.error);
    else resolveWaiting(shard, one, outcome.result);
  }
}

function resolveWaiting(shard: WrittenShard, waiting: Waiting, result: EntryResult): void {
  if (result.kind !== 'granted') abandonIfInDoubt(shard, waiting);
  const isDoubtful = result.kind === 'denied' && waiting.doubt !== undefined;
  waiting.resolve(isDoubtful ? { ...result, inDoubt: true } : result);
}

export function rejectWaiting(shard: Pick<WrittenShard, 'abandon'>, waiting: Waiting, error: unknown): void {
  abandonIfInDoubt(shard, waiting);
  waiting.reject(error);
}

/** The caller gets no lease, although a write may have granted it. */
function abandonIfInDoubt(shard: Pick<WrittenShard, 'abandon'>, { entry, doubt, tuning }: Waiting): void {
  if (entry.kind === 'ask' && doubt !== undefined) shard.abandon(entry, doubt, tuning);
}

async function perform(
  { executor, key }: WrittenShard,
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
        await pause(waitMs);
        return { kind: 'paused' };
      }
    }
  } catch (error) {
    return { kind: 'failed', error };
  }
}
