import fc from 'fast-check';
import { expect } from 'vitest';
import { FlatRecord } from '../shard/flat-record.js';
import { findDoubtful, type Foreign, foreignWrite } from './foreign-writes.js';
import { KEY, NOW_MS, NS } from '../shard/shard-images.js';
import type { LevelRef } from '../../../../src/backend.js';
import { BackendUnavailable } from '../../../../src/core/errors.js';
import { fullTokens } from '../../../../src/core/limit.js';
import type { ShardImage } from '../../../../src/backends/dynamodb/table/items.js';
import type { Doubt, Entry, EntryResult } from '../../../../src/backends/dynamodb/bucket/group/entries.js';
import type { WriteAnswer } from '../../../../src/backends/dynamodb/bucket/executor.js';
import type {
  CachedImage,
  GroupAnswer,
  GroupStep,
} from '../../../../src/backends/dynamodb/bucket/group/group-state.js';
import { RefundLost } from '../../../../src/backends/dynamodb/bucket/group/refund-lost.js';
import { startGroup, step } from '../../../../src/backends/dynamodb/bucket/group/group-write.js';
import { settleOne } from '../../../../src/backends/dynamodb/bucket/settle/settle-one.js';
import type { Creation, Update } from '../../../../src/backends/dynamodb/bucket/writes/record-write.js';

const MAX_STEPS = 200;
const LOST = new BackendUnavailable('no answer', 'timeout');

/**
 * What happens to one write on its way. The first six may come with a foreign write before. `lost, lands later`: it gets no
 * answer, and reaches the store after the next write.
 */
export const EVENTS = [
  'answered',
  'lost, landed',
  'lost, not landed',
  'lost, lands later',
  'sent twice',
  'throttled',
  'conflict',
  'unsent',
] as const;

export interface Happening {
  /** `failed`: nothing is written, and a retry would not help. */
  readonly event: (typeof EVENTS)[number] | 'failed';
  /** A foreign writer comes first, and, where the write is sent twice, in between. */
  readonly foreign: Foreign;
}

export const happenings: fc.Arbitrary<Happening> = fc.record({
  event: fc.constantFrom(...EVENTS, 'answered', 'answered'),
  foreign: fc.constantFrom('none', 'none', 'none', 'take', 'refund', 'rebase', 'earlier grant'),
});

/** Answers to actions other than writes. Left out: pauses end, reads answer, and the shard is settled alone. */
export interface OtherAnswers {
  /** Which pause finds no time left, counted from 0; -1 for none. */
  readonly outOfTime: number;
  /** Which read fails, counted from 0; -1 for none. */
  readonly failedRead: number;
  /** Whether all shards can be settled together. */
  readonly settlesAll: boolean;
}

const USUAL: OtherAnswers = { outOfTime: -1, failedRead: -1, settlesAll: false };

/** A write of the group that landed, with the record before and after. Before a creation: the full bucket. */
export interface Landing {
  readonly before: ShardImage;
  readonly after: ShardImage;
  readonly isCreation: boolean;
  /** As the write has them: once a write got no answer, an ask that may be cut keeps the amount that it had there. */
  readonly entries: readonly Entry[];
  readonly results: ReadonlyMap<number, EntryResult | null>;
  /** False: an earlier write got no answer, so this one left out the refunds that could count twice. */
  readonly withRefunds: boolean;
  /** The store got the write twice, with a foreign write in between. This is the first time, which its sender cannot see. */
  readonly isUnheard: boolean;
}

/** A settlement or a reclaim of the group that landed. */
export interface Maintenance {
  readonly before: ShardImage;
  readonly after: ShardImage;
}

export type Told = EntryResult | 'deferred' | { readonly error: unknown };

export interface Driven {
  readonly told: readonly Told[];
  readonly landings: readonly Landing[];
  readonly maintenance: readonly Maintenance[];
  readonly final: ShardImage | null;
  readonly foreignWrites: number;
  readonly events: ReadonlySet<string>;
  /** The record at the start and after each action. */
  readonly moments: readonly (ShardImage | null)[];
  /** The kinds of actions, of answers to them, and of outcomes. */
  readonly reached: ReadonlySet<string>;
  /** What is in doubt, by entry. */
  readonly doubts: ReadonlyMap<number, Doubt>;
  /** The writes that got no answer and may still land. */
  readonly late: readonly (Creation | Update)[];
}

/** Drives the group through a history of answers until it is done. When the history ends, every write is answered. */
export function drive(
  truth: ShardImage | null,
  seen: ShardImage | null,
  entries: readonly Entry[],
  history: readonly Happening[],
  details: Partial<CachedImage> & { readonly others?: OtherAnswers } = {},
): Driven {
  const key = (truth ?? seen)?.key ?? KEY;
  const { others = USUAL, ...cached } = details;
  let late: readonly { readonly write: Creation | Update; readonly now: GroupStep }[] = [];
  const doubts = new Map<number, Doubt>();
  const record = new FlatRecord(truth, key);
  const told: Told[] = [];
  const landings: Landing[] = [];
  const maintenance: Maintenance[] = [];
  const events = new Set<string>();
  let foreignWrites = 0;
  const reached = new Set<string>();
  const moments = [record.image];
  let sends = 0;
  let reads = 0;
  let pauses = 0;

  const doubtful = history.some(({ foreign }) => foreign === 'earlier grant') ? findDoubtful(entries) : undefined;
  const interfere = (kind: Happening['foreign']): boolean => {
    const image = record.image;
    if (kind === 'delete') return image !== null && record.delete();
    const write = image && foreignWrite(image, kind, doubtful, foreignWrites + 1);
    if (write === null) return false;
    foreignWrites += 1;
    return record.write(write);
  };
  const land = (write: Creation | Update, { state }: GroupStep): WriteAnswer => {
    const before = record.image ?? (write.kind === 'create' ? fullImage(write) : null);
    if (!record.write(write) || before === null) return { kind: 'refused', image: record.image };
    const after = record.image!;
    if (state.purpose.kind === 'group') {
      const { open, results } = state.purpose.sent;
      const withRefunds = state.unanswered.writes.length === 0;
      const answers = new Map(open.map((index, at) => [index, results[at] ?? null]));
      const isCreation = write.kind === 'create';
      landings.push({
        before,
        after,
        isCreation,
        entries: state.group.entries,
        results: answers,
        withRefunds,
        isUnheard: false,
      });
    } else {
      maintenance.push({ before, after });
    }
    return { kind: 'written', image: after };
  };
  const send = (write: Creation | Update, now: GroupStep): WriteAnswer => {
    const { event, foreign } = history[sends++] ?? { event: 'answered', foreign: 'none' };
    events.add(event);
    const earlier = late;
    late = event === 'lost, lands later' ? [{ write, now }] : [];
    const answer = meet(write, now, event, foreign);
    for (const one of earlier) land(one.write, one.now);
    return answer;
  };
  const meet = (
    write: Creation | Update,
    now: GroupStep,
    event: Happening['event'],
    foreign: Happening['foreign'],
  ): WriteAnswer => {
    if (event !== 'sent twice') interfere(foreign);
    switch (event) {
      case 'answered':
        return land(write, now);
      case 'lost, landed':
        land(write, now);
        return { kind: 'no-answer', unsent: false, error: LOST };
      case 'lost, not landed':
      case 'lost, lands later':
        return { kind: 'no-answer', unsent: false, error: LOST };
      case 'unsent':
        return { kind: 'no-answer', unsent: true, error: LOST };
      case 'sent twice': {
        const before = landings.length;
        land(write, now);
        const first = landings[before];
        if (interfere(foreign) && first !== undefined) landings[before] = { ...first, isUnheard: true };
        return land(write, now);
      }
      case 'throttled':
      case 'conflict':
        return { kind: 'busy', cause: event, hotKey: false, error: LOST };
      case 'failed':
        return { kind: 'failed', error: LOST };
    }
  };
  const settleAll = (level: LevelRef): boolean => {
    const image = record.image;
    if (!others.settlesAll || image === null) return false;
    const options = { ns: NS, image, nowMs: NOW_MS, lifeFactor: 7, writeId: 'settled-by-all' };
    const landed = record.write(settleOne(options, level));
    if (landed) maintenance.push({ before: image, after: record.image! });
    return landed;
  };
  const perform = (now: GroupStep): GroupAnswer => {
    switch (now.action.kind) {
      case 'send': {
        const id = `write-${sends}`;
        return { kind: 'sent', id, answer: send(now.action.build(id), now) };
      }
      case 'read':
        if (reads++ === others.failedRead) return { kind: 'failed', error: LOST };
        return { kind: 'read', image: record.image };
      case 'pause':
        return { kind: pauses++ === others.outOfTime ? 'out-of-time' : 'paused' };
      case 'settle-all':
        return { kind: 'settled-all', isDone: settleAll(now.action.level) };
      case 'done':
        throw new Error('The group is done');
    }
  };

  const inDoubt = new Set(doubtful === undefined ? [] : [doubtful.leaseId]);
  const group = { ns: NS, key, entries, nowMs: NOW_MS, maxRetries: 5, lifeFactor: 7, inDoubt };
  let now = startGroup(group, { image: seen, trust: 'guess', isAbsent: false, judgement: null, ...cached });
  for (let steps = 0; steps < MAX_STEPS; steps++) {
    for (const { index, outcome, doubt } of now.answers) {
      expect(told[index]).toBeUndefined();
      if (doubt !== undefined) doubts.set(index, doubt);
      told[index] =
        outcome.kind === 'result' ? outcome.result : outcome.kind === 'error' ? { error: outcome.error } : 'deferred';
      reached.add(`told ${outcomeOf(told[index])}`);
    }
    reached.add(actionOf(now));
    if (now.action.kind === 'done') {
      const writes = late.map(({ write }) => write);
      const final = record.image;
      return { told, landings, maintenance, final, foreignWrites, events, moments, reached, doubts, late: writes };
    }
    const answer = perform(now);
    moments.push(record.image);
    reached.add(`answered ${answerOf(answer)}`);
    now = step(now.state, answer);
  }
  throw new Error('The group does not end');
}

/** What a creation starts from: the bucket as it would be created if nothing was taken. */
function fullImage({ image }: Creation): ShardImage {
  const limits = image.limits.map((one) => ({ ...one, tokensMilli: fullTokens(one.rate), consumedMilli: 0 }));
  return { ...image, limits, acquires: 0, holders: new Map() };
}

function actionOf({ action, state: { purpose, image } }: GroupStep): string {
  switch (action.kind) {
    case 'send':
      return purpose.kind === 'group' && image === null ? 'send create' : `send ${purpose.kind}`;
    case 'read':
      return `read to ${purpose.kind}`;
    case 'done':
      return action.forget ? 'done, forget' : 'done';
    case 'settle-all':
    case 'pause':
      return action.kind;
  }
}

function answerOf(answer: GroupAnswer): string {
  switch (answer.kind) {
    case 'read':
      return answer.image === null ? 'read, no record' : 'read';
    case 'settled-all':
      return answer.isDone ? 'settled all' : 'not settled all';
    case 'sent': {
      const { answer: written } = answer;
      if (written.kind === 'no-answer') return written.unsent ? 'unsent' : 'no-answer';
      if (written.kind === 'refused' && written.image === null) return 'refused, no record';
      return written.kind === 'busy' ? written.cause : `sent, ${written.kind}`;
    }
    case 'paused':
    case 'out-of-time':
    case 'failed':
      return answer.kind;
  }
}

function outcomeOf(told: Told | undefined): string {
  if (told === undefined || told === 'deferred') return 'deferred';
  return 'error' in told ? (told.error instanceof RefundLost ? 'refund lost' : 'error') : told.kind;
}
