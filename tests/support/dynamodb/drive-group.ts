import fc from 'fast-check';
import { expect } from 'vitest';
import { FlatRecord } from './flat-record.js';
import { KEY, NOW_MS, NS } from './shard-images.js';
import { BackendUnavailable } from '../../../src/core/errors.js';
import { ATTRIBUTE, type ShardImage } from '../../../src/backends/dynamodb/table/items.js';
import { buildShardKey } from '../../../src/backends/dynamodb/table/keys.js';
import type { Entry, EntryResult } from '../../../src/backends/dynamodb/bucket/group/entries.js';
import type { WriteAnswer } from '../../../src/backends/dynamodb/bucket/executor.js';
import type { GroupAnswer, GroupStep } from '../../../src/backends/dynamodb/bucket/group/group-state.js';
import { startGroup, step } from '../../../src/backends/dynamodb/bucket/group/group-write.js';
import { planSettle } from '../../../src/backends/dynamodb/bucket/settle/settle.js';
import { type Creation, RecordUpdate, type Update } from '../../../src/backends/dynamodb/bucket/writes/record-write.js';
import { buildSettlement } from '../../../src/backends/dynamodb/bucket/writes/write-settlement.js';

const MAX_STEPS = 200;
const LOST = new BackendUnavailable('no answer', 'timeout');

/** What happens to one write on its way. The first five may come with a foreign write before. */
export const EVENTS = [
  'answered',
  'lost, landed',
  'lost, not landed',
  'sent twice',
  'throttled',
  'conflict',
  'unsent',
] as const;

export interface Happening {
  readonly event: (typeof EVENTS)[number];
  /** A foreign writer comes first, and, where the write is sent twice, in between. */
  readonly foreign: 'none' | 'take' | 'refund' | 'rebase';
}

export const happenings: fc.Arbitrary<Happening> = fc.record({
  event: fc.constantFrom(...EVENTS, 'answered', 'answered'),
  foreign: fc.constantFrom('none', 'none', 'none', 'take', 'refund', 'rebase'),
});

/** A write of the group that landed, with the record before and after. */
export interface Landing {
  readonly before: ShardImage;
  readonly after: ShardImage;
  readonly results: ReadonlyMap<number, EntryResult | null>;
  /** False: an earlier write got no answer, so this one left out the refunds that could count twice. */
  readonly withRefunds: boolean;
  /** A write had landed whose sender does not know it: the store got it twice, with a foreign write in between. */
  readonly isDuplicate: boolean;
}

export type Told = EntryResult | 'deferred' | { readonly error: unknown };

interface Driven {
  readonly told: readonly Told[];
  readonly landings: readonly Landing[];
  readonly final: ShardImage;
  readonly foreignWrites: number;
  readonly events: ReadonlySet<string>;
}

/** Drives the group through a history of answers until it is done. When the history ends, every write is answered. */
export function drive(
  truth: ShardImage,
  seen: ShardImage | null,
  entries: readonly Entry[],
  history: readonly Happening[],
): Driven {
  const record = new FlatRecord(truth);
  const told: Told[] = [];
  const landings: Landing[] = [];
  const events = new Set<string>();
  let isDuplicate = false;
  let foreignWrites = 0;
  let sends = 0;

  const interfere = (kind: Happening['foreign']): void => {
    const image = record.image;
    if (kind === 'none' || image === null) return;
    foreignWrites += 1;
    record.write(kind === 'rebase' ? rebaseOf(image, foreignWrites) : foreignChange(image, kind, foreignWrites));
  };
  const land = (write: Creation | Update, { state }: GroupStep): WriteAnswer => {
    const before = record.image!;
    if (!record.write(write)) return { kind: 'refused', image: record.image };
    const after = record.image!;
    if (state.purpose.kind === 'group') {
      const { open, results } = state.purpose.sent;
      const withRefunds = state.unanswered.writes.length === 0;
      const answers = new Map(open.map((index, at) => [index, results[at] ?? null]));
      landings.push({ before, after, results: answers, withRefunds, isDuplicate });
    }
    return { kind: 'written', image: after };
  };
  const send = (write: Creation | Update, now: GroupStep): WriteAnswer => {
    const { event, foreign } = history[sends++] ?? { event: 'answered', foreign: 'none' };
    events.add(event);
    if (event !== 'sent twice') interfere(foreign);
    switch (event) {
      case 'answered':
        return land(write, now);
      case 'lost, landed':
        land(write, now);
        return { kind: 'no-answer', unsent: false, error: LOST };
      case 'lost, not landed':
        return { kind: 'no-answer', unsent: false, error: LOST };
      case 'unsent':
        return { kind: 'no-answer', unsent: true, error: LOST };
      case 'sent twice':
        isDuplicate = (land(write, now).kind === 'written' && foreign !== 'none') || isDuplicate;
        interfere(foreign);
        return land(write, now);
      case 'throttled':
      case 'conflict':
        return { kind: 'busy', cause: event, hotKey: false, error: LOST };
    }
  };
  const perform = (now: GroupStep): GroupAnswer => {
    switch (now.action.kind) {
      case 'send': {
        const id = `write-${sends}`;
        return { kind: 'sent', id, answer: send(now.action.build(id), now) };
      }
      case 'read':
        return { kind: 'read', image: record.image };
      case 'pause':
        return { kind: 'paused' };
      case 'settle-all':
      case 'done':
        throw new Error(`The group asked for ${now.action.kind}`);
    }
  };

  const group = { ns: NS, key: KEY, entries, nowMs: NOW_MS, maxRetries: 5, lifeFactor: 7, inDoubt: new Set<string>() };
  let now = startGroup(group, { image: seen, trust: 'guess', isAbsent: false, judgement: null });
  for (let steps = 0; steps < MAX_STEPS; steps++) {
    for (const { index, outcome } of now.answers) {
      expect(told[index]).toBeUndefined();
      told[index] =
        outcome.kind === 'result' ? outcome.result : outcome.kind === 'error' ? { error: outcome.error } : 'deferred';
    }
    if (now.action.kind === 'done') return { told, landings, final: record.image!, foreignWrites, events };
    now = step(now.state, perform(now));
  }
  throw new Error('The group does not end');
}

/** Another process takes a tenth of each rate, if it is there, or gives it back. */
function foreignChange({ key, limits }: ShardImage, kind: 'take' | 'refund', at: number): Update {
  const update = new RecordUpdate().set(ATTRIBUTE.writeId, `foreign-write-${at}`);
  for (const { limit, tokensMilli } of limits) {
    const part = Math.floor(limit.capacityMilli / 10);
    if (limit.kind !== 'rate' || (kind === 'take' && tokensMilli < part)) continue;
    const milli = kind === 'take' ? part : -part;
    update.add(ATTRIBUTE.tokens(limit.name), -milli).add(ATTRIBUTE.consumed(limit.name), milli);
  }
  return update.of(buildShardKey(NS, key));
}

function rebaseOf(image: ShardImage, at: number): Update {
  const settlement = planSettle(image, { limits: image.limits.map(({ limit }) => limit) }, NOW_MS);
  const ids = { own: `foreign-write-${at}`, unanswered: [] };
  return buildSettlement(NS, image, settlement, image.version, image.ttlSec, ids);
}
