import fc from 'fast-check';
import type { Happening, OtherAnswers } from './drive-group.js';
import { bucketOf, groups, heldLists, parts } from './random-groups.js';
import { KEY, limitLists, NOW_MS, VERSION } from '../shard/shard-images.js';
import type { AskEntry, ChangeEntry, Entry } from '../../../../src/backends/dynamodb/bucket/group/entries.js';
import type { CachedImage } from '../../../../src/backends/dynamodb/bucket/group/group-state.js';
import { decodeHolder, encodeHolder, type ShardImage } from '../../../../src/backends/dynamodb/table/items.js';
import type { PortableOperation } from '../../../../src/core/bucket/portable.js';
import { Limit } from '../../../../src/core/limit.js';

/** One group, what is stored and cached when it starts, and what the store answers. */
export interface WideScenario {
  /** null: there is no record. */
  readonly truth: ShardImage | null;
  readonly cached: CachedImage;
  readonly entries: readonly Entry[];
  readonly history: readonly Happening[];
  readonly others: OtherAnswers;
}

const EVERY_EVENT = [
  'answered',
  'answered',
  'answered',
  'lost, landed',
  'lost, not landed',
  'sent twice',
  'throttled',
  'conflict',
  'unsent',
  'failed',
] as const;

const histories: fc.Arbitrary<readonly Happening[]> = fc.oneof(
  { weight: 5, arbitrary: fc.array(happening(), { maxLength: 8 }) },
  // Other writers win every time, until the asks are given up.
  {
    weight: 1,
    arbitrary: fc.constant(Array.from({ length: 8 }, (): Happening => ({ event: 'answered', foreign: 'rebase' }))),
  },
);

function happening(): fc.Arbitrary<Happening> {
  return fc.record({
    event: fc.constantFrom(...EVERY_EVENT),
    foreign: fc.constantFrom('none', 'none', 'none', 'none', 'take', 'refund', 'rebase', 'earlier grant', 'delete'),
  });
}

const otherAnswers: fc.Arbitrary<OtherAnswers> = fc.record({
  outOfTime: fc.constantFrom(-1, -1, -1, 0, 1),
  failedRead: fc.constantFrom(-1, -1, -1, 0, 1),
  settlesAll: fc.boolean(),
});

/** Rates, slots and limits that are unlimited. */
const lists: fc.Arbitrary<Limit[]> = fc
  .tuple(limitLists({ most: 3 }), fc.constantFrom(null, null, 'lifted', 'free'))
  .map(([limits, name]) => (name === null ? limits : [...limits, Limit.unlimited(name)]));

/** What became of each limit in other rules. */
type Change = 'same' | 'larger' | 'other kind' | 'unlimited' | 'removed';

function changed(limits: readonly Limit[], changes: readonly Change[]): readonly Limit[] {
  const other = limits.flatMap((limit, at) => {
    switch (changes[at] ?? 'same') {
      case 'same':
        return [limit];
      case 'larger':
        return limit.kind === 'rate'
          ? [Limit.custom(limit.name, { capacity: limit.capacity + 5, refillAmount: 1, refillPeriodMs: 1_000 })]
          : [Limit.concurrent(limit.name, 7)];
      case 'other kind':
        return [limit.kind === 'concurrent' ? Limit.perMinute(limit.name, 6) : Limit.concurrent(limit.name, 3)];
      case 'unlimited':
        return [Limit.unlimited(limit.name)];
      case 'removed':
        return [];
    }
  });
  return other.length === 0 ? [Limit.perMinute('only', 10)] : other;
}

const someChanges = fc.array(
  fc.constantFrom<Change[]>('same', 'same', 'larger', 'other kind', 'unlimited', 'removed'),
  { minLength: 4, maxLength: 4 },
);

interface Shape {
  readonly cache: 'image' | 'none' | 'absent';
  readonly isStored: boolean;
  /** Whose rules are newer: the stored ones, or those of the cached image, as after a delete. */
  readonly rules: 'same' | 'stored newer' | 'cached newer';
  readonly place: Pick<ShardImage, 'key' | 'shardCount'>;
  readonly paused: 'no' | 'stored' | 'cached' | 'both';
  readonly ttl: 'usual' | 'none' | 'soon';
  readonly trust: CachedImage['trust'];
  readonly ageMs: number;
  readonly isIdle: boolean;
  readonly sameBase: boolean;
}

const often = <T>(usual: T, ...rare: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof(
    { weight: 6, arbitrary: fc.constant(usual) },
    ...rare.map((one) => ({ weight: 1, arbitrary: fc.constant(one) })),
  );

const shapes: fc.Arbitrary<Shape> = fc.record({
  cache: often<Shape['cache']>('image', 'none', 'absent'),
  isStored: often(true, false),
  rules: often<Shape['rules']>('same', 'stored newer', 'cached newer'),
  place: often({ key: KEY, shardCount: 1 }, { key: KEY, shardCount: 2 }, { key: { ...KEY, shard: 1 }, shardCount: 2 }),
  paused: often<Shape['paused']>('no', 'stored', 'cached', 'both'),
  ttl: often<Shape['ttl']>('usual', 'none', 'soon'),
  trust: often<Shape['trust']>('guess', 'young', 'young'),
  ageMs: fc.constantFrom(0, 1, 999, 20_000),
  isIdle: fc.boolean(),
  sameBase: often(true, false),
});

/** Newer rules for a bucket of several shards: where they change its slots, all shards must be settled together. */
const resettled: fc.Arbitrary<Shape> = shapes.map((shape) => ({
  ...shape,
  cache: 'image',
  isStored: true,
  rules: 'cached newer',
  place: { key: KEY, shardCount: 2 },
}));

/** What makes an entry another one. */
interface Extra {
  readonly kind: 'none' | 'dry run' | 'portable' | 'passes' | 'fences' | 'held only' | 'operation';
  readonly lasting: boolean;
  readonly operation: PortableOperation['kind'];
  readonly milli: number;
  readonly id: string;
}

const extras: fc.Arbitrary<Extra> = fc.record({
  kind: often<Extra['kind']>('none', 'dry run', 'portable', 'passes', 'fences', 'held only', 'operation', 'operation'),
  lasting: often(false, true),
  operation: fc.constantFrom('settle', 'commit', 'adjust', 'release', 'rollback', 'follow'),
  milli: fc.constantFrom(-2_000, 0, 700, 3_000),
  id: fc.constantFrom('adjust-1', 'adjust-2'),
});

export const wideScenarios: fc.Arbitrary<WideScenario> = fc
  .record({
    limits: lists,
    changes: someChanges,
    shape: fc.oneof({ weight: 7, arbitrary: shapes }, { weight: 1, arbitrary: resettled }),
    held: heldLists,
    lost: fc.boolean(),
    states: fc.array(fc.constantFrom('open', 'open', 'committed', 'rolled-back', null, null), {
      minLength: 5,
      maxLength: 5,
    }),
    truthParts: parts,
    seenParts: fc.option(parts, { nil: null }),
    group: groups,
    extra: fc.array(extras, { minLength: 8, maxLength: 8 }),
    history: histories,
    others: otherAnswers,
  })
  .map(({ limits, changes, shape, held, lost, states, truthParts, seenParts, group, extra, history, others }) => {
    const baseMs = NOW_MS - shape.ageMs;
    const { place, rules } = shape;
    const stored = rules === 'same' ? limits : changed(limits, changes);
    // A settlement moves the base.
    const storedBaseMs = rules === 'same' && shape.sameBase ? baseMs : baseMs + 1;
    const withRest = (image: ShardImage, isTruth: boolean): ShardImage =>
      shaped(image, shape, stateOf(held, states, isTruth || !lost), isTruth);
    const full = withRest(bucketOf(stored, held, truthParts, storedBaseMs, place), true);
    const seenHeld = lost ? held.filter((_, at) => at % 2 === 0) : held;
    const seen = withRest(bucketOf(limits, seenHeld, seenParts ?? truthParts, baseMs, place), false);
    const entries = group(seen).map((entry, at) => withExtra(entry, extra[at]!, seen));
    return {
      truth: shape.isStored ? full : null,
      cached: {
        image: shape.cache === 'image' ? seen : null,
        trust: shape.trust,
        isAbsent: shape.cache === 'absent',
        judgement: null,
      },
      entries,
      history,
      others,
    };
  });

/** In an older image a lease that has ended may still be open. It is never open again. */
function stateOf(held: readonly { readonly id: string }[], states: readonly State[], isNew: boolean) {
  return (leaseId: string): State => {
    const state = states[held.findIndex(({ id }) => id === leaseId)] ?? null;
    return state === null || isNew ? state : 'open';
  };
}

function shaped(image: ShardImage, shape: Shape, state: (leaseId: string) => State, isTruth: boolean): ShardImage {
  const { rules, ttl, paused, isIdle } = shape;
  const isNewer = rules === (isTruth ? 'stored newer' : 'cached newer');
  const holders = new Map([...image.holders].map(([id, holder]) => [id, asPortable(id, holder, state(id))]));
  const isPaused = paused === 'both' || paused === (isTruth ? 'stored' : 'cached');
  return {
    ...image,
    holders,
    onSweepList: holders.size > 0,
    version: isNewer ? { ...VERSION, sequence: 2 } : image.version,
    ttlSec: ttl === 'none' ? null : ttl === 'soon' ? NOW_MS / 1_000 + 60 : image.ttlSec,
    // The write id contains the time of the write.
    writeId: isIdle ? '00000000zzz' : image.writeId,
    ...(isPaused ? { pause: { endMs: NOW_MS + 5_000, reason: 'upkeep' } } : {}),
  };
}

type State = 'open' | 'committed' | 'rolled-back' | null;

function asPortable(
  id: string,
  holder: ShardImage['holders'] extends ReadonlyMap<string, infer H> ? H : never,
  state: State,
) {
  const { expiresAtMs, acquiredAtMs, slots, rates, caller } = holder;
  // What a closed lease held is not free again in the balance, which only makes the bucket smaller.
  if (state === null || slots.length > 0) return holder;
  const portable = { state, taken: rates ?? [], adjusts: ['adjust-1'] };
  const open = { expiresAtMs, acquiredAtMs, slots, rates, caller, portable };
  return decodeHolder(id, encodeHolder(state === 'open' ? open : { ...open, rates: null }));
}

function withExtra(entry: Entry, extra: Extra, seen: ShardImage): Entry {
  if (entry.kind === 'ask') return askWith(entry, extra);
  return entry.kind === 'change' ? changeWith(entry, extra, seen) : entry;
}

function askWith(entry: AskEntry, { kind, lasting }: Extra): AskEntry {
  const level = { ...entry.level, lasting };
  const { holder } = level;
  switch (kind) {
    case 'dry run':
      return { ...entry, level: { ...level, holder: null }, leaseId: null, dryRun: true, counts: false };
    case 'passes':
      return { ...entry, level, passesShadows: true };
    case 'portable': {
      if (holder === null) return { ...entry, level };
      const asks = level.asks.map(({ atMost: _atMost, ...ask }) => ask);
      const taken = asks
        .filter(({ name, milli }) => milli > 0 && !holder.slots.some((slot) => slot.name === name))
        .map(({ name, milli }) => ({ name, milli }));
      const portable = { state: 'open', taken, adjusts: [] } as const;
      const rates = holder.rates === null ? null : taken;
      return { ...entry, level: { ...level, asks, holder: { ...holder, rates, portable } } };
    }
    case 'none':
    case 'fences':
    case 'held only':
    case 'operation':
      return { ...entry, level };
  }
}

function changeWith(entry: ChangeEntry, { kind, lasting, operation, milli, id }: Extra, seen: ShardImage): Entry {
  const level = { ...entry.level, lasting };
  if (kind === 'fences') return { ...entry, level, fences: milli > 0 ? null : seen.baseMs };
  if (kind === 'held only' && level.holder !== 'none') {
    const found = milli < 0 ? 'the holder of another lease' : seen.holders.get(entry.leaseId)?.text;
    const exactly = milli === 0 || found === undefined ? {} : { holderText: found };
    return { ...entry, level, onlyIfHeld: true, ...exactly };
  }
  if (kind !== 'operation') return { ...entry, level };
  const { entityId, resource, limits, version } = level;
  const charged = limits.filter((limit) => limit.kind !== 'concurrent').map(({ name }) => ({ name, milli }));
  const totals = charged.map((one) => ({ ...one, milli: Math.abs(milli) }));
  const lost = charged.filter((one) => one.milli > 0);
  const ref = { entityId, resource, limits, version, lasting, kind: 'operation' as const, dueIfLost: lost };
  const leaseId = entry.leaseId === '' ? ([...seen.holders.keys()][0] ?? 'gone') : entry.leaseId;
  return {
    kind: 'operation',
    level: { ...ref, operation: operationOf(operation, id, totals, charged) },
    leaseId,
    nowMs: entry.nowMs,
  };
}

function operationOf(
  kind: PortableOperation['kind'],
  id: string,
  totals: readonly { readonly name: string; readonly milli: number }[],
  deltas: readonly { readonly name: string; readonly milli: number }[],
): PortableOperation {
  switch (kind) {
    case 'settle':
    case 'commit':
      return { kind, totals };
    case 'adjust':
      return { kind, id, deltas };
    case 'follow':
      return { kind, step: totals.length, state: FOLLOWED[id] ?? 'open', released: id === 'adjust-2', totals };
    case 'release':
    case 'rollback':
      return { kind };
  }
}

const FOLLOWED: Readonly<Record<string, 'committed'>> = { 'adjust-2': 'committed' };
