import { add, type Int, sub } from '../int.js';
import { isConsumed } from '../limit-kind.js';
import {
  type Amount,
  amountOf,
  type ClosedState,
  type Holder,
  type LimitBalance,
  type PortablePart,
} from './decide.js';

export type { ClosedState, PortablePart } from './decide.js';

/** One operation of a portable lease. All but `adjust` are absolute: the holder shows whether they are done. */
export type PortableOperation =
  | { readonly kind: 'settle' | 'commit'; readonly totals: readonly Amount[] }
  | { readonly kind: 'adjust'; readonly id: string; readonly deltas: readonly Amount[] }
  | { readonly kind: 'release' | 'rollback' };

/** The change that an operation makes to one bucket. Only the stored holder tells what is due. */
export interface PortableChange {
  readonly kind: 'operation';
  readonly operation: PortableOperation;
  /**
   * What is due if the holder no longer exists. Never negative: the holder may have been closed and removed since, and a
   * second refund would create tokens.
   */
  readonly dueIfLost: readonly Amount[];
}

export type PortableEffect =
  | { readonly kind: 'lost'; readonly due: readonly Amount[] }
  | { readonly kind: 'closed'; readonly state: ClosedState }
  | {
      readonly kind: 'done';
      /** To take from rates (positive) or to give back (negative). */
      readonly due: readonly Amount[];
      readonly slotsBack: readonly Amount[];
      /** The stored holder itself if nothing changes. */
      readonly holder: Holder;
    };

/** The holders that a bucket, or one shard of it, may have before it denies asks for portable leases. */
export const MAX_HOLDERS_OF_PORTABLE = 1_000;

/** How many ids of adjusts a holder keeps. */
const KEPT_ADJUSTS = 4;

/** Whether the lease has ended. Its holder then holds nothing, and stays until its expiry to answer repeats. */
export function isClosed({ portable }: Holder): boolean {
  return portable !== undefined && portable.state !== 'open';
}

/** The number of leases that have not ended. */
export function countOpen(holders: ReadonlyMap<string, Holder>): number {
  let open = 0;
  for (const holder of holders.values()) if (!isClosed(holder)) open += 1;
  return open;
}

/** The effect of an operation on a bucket with these limits, if the bucket has this holder of the lease. */
export function operate(
  stored: Holder | undefined,
  { operation, dueIfLost }: PortableChange,
  limits: readonly Pick<LimitBalance, 'limit'>[],
): PortableEffect {
  if (stored === undefined) return { kind: 'lost', due: dueIfLost };
  const part = partOf(stored);
  const isRepeated = operation.kind === 'adjust' && part.adjusts.includes(operation.id);
  if (isRepeated || endsAs(operation) === part.state) return unchanged(stored);
  // The slots of a closed lease were given back when it was closed.
  if (part.state !== 'open') {
    return operation.kind === 'release' ? unchanged(stored) : { kind: 'closed', state: part.state };
  }
  switch (operation.kind) {
    case 'release':
      return stored.slots.length === 0
        ? unchanged(stored)
        : { kind: 'done', due: [], slotsBack: stored.slots, holder: { ...stored, slots: [] } };
    case 'settle':
      return changed(stored, part, charged(operation.totals, limits));
    case 'adjust': {
      const totals = operation.deltas.map(({ name, milli }) => ({ name, milli: sumFrom0(part.taken, name, milli) }));
      const adjusts = [...part.adjusts, operation.id].slice(-KEPT_ADJUSTS);
      return changed(stored, { ...part, adjusts }, charged(totals, limits));
    }
    case 'commit':
      return ended(stored, 'committed', changed(stored, part, charged(operation.totals, limits)));
    case 'rollback':
      return ended(stored, 'rolled-back', changed(stored, part, none(part.taken)));
  }
}

function endsAs({ kind }: PortableOperation): ClosedState | null {
  if (kind === 'commit') return 'committed';
  return kind === 'rollback' ? 'rolled-back' : null;
}

/** A lease gives back at most what it took. */
function sumFrom0(taken: readonly Amount[], name: string, delta: Int): Int {
  const sum = add(amountOf(taken, name) ?? 0, delta);
  return sum < 0 ? 0 : sum;
}

function none(taken: readonly Amount[]): readonly Amount[] {
  return taken.map(({ name }) => ({ name, milli: 0 }));
}

/** A limit that the bucket lacks is not charged. */
function charged(totals: readonly Amount[], limits: readonly Pick<LimitBalance, 'limit'>[]): readonly Amount[] {
  return totals.filter(({ name }) => limits.some(({ limit }) => limit.name === name && isConsumed(limit.kind)));
}

function partOf({ portable, rates }: Holder): PortablePart {
  return portable ?? { state: 'open', taken: rates ?? [], adjusts: [] };
}

function unchanged(holder: Holder): PortableEffect {
  return { kind: 'done', due: [], slotsBack: [], holder };
}

type Done = Extract<PortableEffect, { readonly kind: 'done' }>;

function changed(stored: Holder, part: PortablePart, totals: readonly Amount[]): Done {
  const due = totals
    .map(({ name, milli }) => ({ name, milli: sub(milli, amountOf(part.taken, name) ?? 0) }))
    .filter(({ milli }) => milli !== 0);
  const others = part.taken.filter(({ name }) => amountOf(totals, name) === undefined);
  const taken = [...others, ...totals].filter(({ milli }) => milli !== 0);
  const holder = { ...stored, rates: stored.rates === null ? null : taken, portable: { ...part, taken } };
  return { kind: 'done', due, slotsBack: [], holder };
}

/** The holder that stays until its expiry, so that a repeat gets the same answer. An expiry gives nothing of it back. */
function ended(stored: Holder, state: ClosedState, { due, holder }: Done): PortableEffect {
  const portable = { ...partOf(holder), state };
  return { kind: 'done', due, slotsBack: stored.slots, holder: { ...holder, slots: [], rates: null, portable } };
}

/** The holder of a lease on several shards of one bucket. undefined: one of its parts no longer exists. */
export function joinHolders(parts: readonly (Holder | undefined)[]): Holder | undefined {
  let whole: Holder | undefined;
  for (const part of parts) {
    if (part === undefined) return undefined;
    whole = whole === undefined ? part : joined(whole, part);
  }
  return whole;
}

/** The first part decides the state, because every operation changes it first. */
function joined(first: Holder, other: Holder): Holder {
  const portable = first.portable && {
    ...first.portable,
    taken: addAmounts(first.portable.taken, other.portable?.taken ?? []),
  };
  return {
    ...first,
    slots: addAmounts(first.slots, other.slots),
    rates: first.rates === null ? null : addAmounts(first.rates, other.rates ?? []),
    ...(portable === undefined ? {} : { portable }),
  };
}

/** The sum of each limit. */
export function addAmounts(a: readonly Amount[], b: readonly Amount[]): readonly Amount[] {
  const sums = new Map<string, Int>();
  for (const { name, milli } of [...a, ...b]) sums.set(name, add(sums.get(name) ?? 0, milli));
  return [...sums].map(([name, milli]) => ({ name, milli }));
}
