import fc from 'fast-check';
import { expect } from 'vitest';
import { FlatRecord } from './flat-record.js';
import { KEY, NOW_MS, NS } from './shard-images.js';
import { BackendUnavailable } from '../../../src/core/errors.js';
import { type Amount, amountOf, type Holder } from '../../../src/core/bucket/decide.js';
import { ATTRIBUTE, encodeHolder, type ShardImage } from '../../../src/backends/dynamodb/table/items.js';
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
  /**
   * A foreign writer comes first, and, where the write is sent twice, in between. `earlier grant`: a write of an earlier
   * group, which got no answer, lands late and grants an ask that this group writes again.
   */
  readonly foreign: 'none' | 'take' | 'refund' | 'rebase' | 'earlier grant';
}

export const happenings: fc.Arbitrary<Happening> = fc.record({
  event: fc.constantFrom(...EVENTS, 'answered', 'answered'),
  foreign: fc.constantFrom('none', 'none', 'none', 'take', 'refund', 'rebase', 'earlier grant'),
});

/** A write of the group that landed, with the record before and after. */
export interface Landing {
  readonly before: ShardImage;
  readonly after: ShardImage;
  /** As the write has them: once a write got no answer, an ask that may be cut keeps the amount that it had there. */
  readonly entries: readonly Entry[];
  readonly results: ReadonlyMap<number, EntryResult | null>;
  /** False: an earlier write got no answer, so this one left out the refunds that could count twice. */
  readonly withRefunds: boolean;
  /** The store got the write twice, with a foreign write in between. This is the first time, which its sender cannot see. */
  readonly isUnheard: boolean;
}

/** A settlement or a reclaim of the group that landed. */
interface Maintenance {
  readonly before: ShardImage;
  readonly after: ShardImage;
}

export type Told = EntryResult | 'deferred' | { readonly error: unknown };

export interface Driven {
  readonly told: readonly Told[];
  readonly landings: readonly Landing[];
  readonly maintenance: readonly Maintenance[];
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
  const maintenance: Maintenance[] = [];
  const events = new Set<string>();
  let foreignWrites = 0;
  let sends = 0;

  const doubtful = history.some(({ foreign }) => foreign === 'earlier grant') ? findDoubtful(entries) : undefined;
  const interfere = (kind: Happening['foreign']): boolean => {
    const image = record.image;
    const write = image && foreignWrite(image, kind, doubtful, foreignWrites + 1);
    if (write === null) return false;
    foreignWrites += 1;
    return record.write(write);
  };
  const land = (write: Creation | Update, { state }: GroupStep): WriteAnswer => {
    const before = record.image!;
    if (!record.write(write)) return { kind: 'refused', image: record.image };
    const after = record.image!;
    if (state.purpose.kind === 'group') {
      const { open, results } = state.purpose.sent;
      const withRefunds = state.unanswered.writes.length === 0;
      const answers = new Map(open.map((index, at) => [index, results[at] ?? null]));
      landings.push({ before, after, entries: state.group.entries, results: answers, withRefunds, isUnheard: false });
    } else {
      maintenance.push({ before, after });
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

  const inDoubt = new Set(doubtful === undefined ? [] : [doubtful.leaseId]);
  const group = { ns: NS, key: KEY, entries, nowMs: NOW_MS, maxRetries: 5, lifeFactor: 7, inDoubt };
  let now = startGroup(group, { image: seen, trust: 'guess', isAbsent: false, judgement: null });
  for (let steps = 0; steps < MAX_STEPS; steps++) {
    for (const { index, outcome } of now.answers) {
      expect(told[index]).toBeUndefined();
      told[index] =
        outcome.kind === 'result' ? outcome.result : outcome.kind === 'error' ? { error: outcome.error } : 'deferred';
    }
    if (now.action.kind === 'done') return { told, landings, maintenance, final: record.image!, foreignWrites, events };
    now = step(now.state, perform(now));
  }
  throw new Error('The group does not end');
}

interface HeldAsk {
  readonly leaseId: string;
  readonly asks: readonly Amount[];
  readonly holder: Holder;
}

/** An ask that an earlier group may have granted. What could be cut keeps its amount from then on. */
function findDoubtful(entries: readonly Entry[]): HeldAsk | undefined {
  for (const entry of entries) {
    if (entry.kind !== 'ask' || entry.leaseId === null || entry.level.holder === null) continue;
    const { asks, holder } = entry.level;
    if (!asks.some(({ atMost }) => atMost === true)) return { leaseId: entry.leaseId, asks, holder };
  }
  return undefined;
}

/** null: there is nothing to write. */
function foreignWrite(
  image: ShardImage,
  kind: Happening['foreign'],
  doubtful: HeldAsk | undefined,
  at: number,
): Update | null {
  switch (kind) {
    case 'none':
      return null;
    case 'rebase':
      return rebaseOf(image, at);
    case 'earlier grant':
      return doubtful === undefined || image.holders.has(doubtful.leaseId) ? null : earlierGrant(image, doubtful, at);
    case 'take':
    case 'refund':
      return foreignChange(image, kind, at);
  }
}

function earlierGrant({ key, limits }: ShardImage, { leaseId, asks, holder }: HeldAsk, at: number): Update {
  const update = new RecordUpdate()
    .set(ATTRIBUTE.writeId, `foreign-write-${at}`)
    .set(ATTRIBUTE.holder(leaseId), encodeHolder(holder))
    .add(ATTRIBUTE.acquires, 1);
  for (const { limit } of limits) {
    const milli = Number(amountOf(asks, limit.name) ?? 0);
    update.add(ATTRIBUTE.tokens(limit.name), -milli);
    if (limit.kind === 'rate') update.add(ATTRIBUTE.consumed(limit.name), milli);
  }
  return update.of(NS, key);
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
  return update.of(NS, key);
}

function rebaseOf(image: ShardImage, at: number): Update {
  const settlement = planSettle(image, { limits: image.limits.map(({ limit }) => limit) }, NOW_MS);
  const ids = { own: `foreign-write-${at}`, unanswered: [] };
  return buildSettlement(NS, image, settlement, image.version, image.ttlSec, ids);
}
