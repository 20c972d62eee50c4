import { sub } from '../int.js';
import type { EpochMs } from '../units.js';
import { type Amount, amountOf, type ClosedState, type Holder, type PortablePart } from './decide.js';
import {
  charged,
  isSameForParents,
  type Limits,
  type StatedDeltas,
  type StatedTotals,
  type Wanted,
  wantedSums,
  wantedTotals,
} from './portable-account.js';

export type { ClosedState, ParentAmount, PortablePart } from './decide.js';

/**
 * Brings a parent to the account of the first level. The account is complete, so a parent that has a later step of it, or
 * its end, ignores an earlier one: the operations of several processes reach the parents in any order, and some never do.
 */
export interface FollowedAccount {
  readonly kind: 'follow';
  readonly step: number;
  readonly state: PortablePart['state'];
  readonly released: boolean;
  /** Every limit that the first level has decided. */
  readonly totals: readonly Amount[];
}

/**
 * One operation of a portable lease on one bucket. The first level decides all but `follow`. All but `adjust` are
 * absolute: the holder shows whether they are done.
 */
export type PortableOperation =
  | StatedTotals
  | StatedDeltas
  | FollowedAccount
  | { readonly kind: 'release' | 'rollback' };

/** The change that an operation makes to one bucket. Only the stored holder shows what is due. */
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
  | { readonly kind: 'closed'; readonly state: ClosedState; readonly part: PortablePart }
  | {
      readonly kind: 'done';
      /** To take from rates (positive) or to give back (negative). */
      readonly due: readonly Amount[];
      readonly slotsBack: readonly Amount[];
      /** The stored holder itself if nothing changes. */
      readonly holder: Holder;
    };

/**
 * The least life of the trace of an ended lease: a queue repeats a job within seconds, also where the lease is about to
 * expire.
 */
const TRACE_LIFE_MS = 60_000;

/** How many ids of adjusts a holder keeps. */
const KEPT_ADJUSTS = 4;

/** Whether the lease has ended. Its holder then holds nothing, and stays as a trace to answer repeats. */
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
  limits: Limits,
  nowMs: EpochMs,
): PortableEffect {
  if (stored === undefined) return { kind: 'lost', due: dueIfLost };
  const part = partOf(stored);
  if (operation.kind === 'follow') return follow(stored, part, operation, limits, nowMs);
  const isRepeated = operation.kind === 'adjust' && part.adjusts.includes(operation.id);
  if (isRepeated || endsAs(operation) === part.state) return unchanged(stored);
  // The slots of a closed lease were given back when it was closed.
  if (part.state !== 'open') {
    return operation.kind === 'release' ? unchanged(stored) : { kind: 'closed', state: part.state, part };
  }
  switch (operation.kind) {
    case 'release':
      return part.released === true ? unchanged(stored) : released(changed(stored, nextStep(part), []));
    case 'settle':
      return decided(stored, part, wantedTotals(part, operation, limits), part.adjusts);
    case 'adjust': {
      const adjusts = [...part.adjusts, operation.id].slice(-KEPT_ADJUSTS);
      return decided(stored, part, wantedSums(part, operation, limits), adjusts);
    }
    case 'commit': {
      const { totals, forParents } = wantedTotals(part, operation, limits);
      return ended('committed', changed(stored, nextStep({ ...part, ...forParents }), totals), nowMs);
    }
    case 'rollback':
      return ended('rolled-back', changed(stored, nextStep(part), none(part.taken)), nowMs);
  }
}

function follow(
  stored: Holder,
  part: PortablePart,
  { step, state, released: isReleased, totals }: FollowedAccount,
  limits: Limits,
  nowMs: EpochMs,
): PortableEffect {
  // An end is final and complete, whichever steps the parent has missed.
  if (part.state !== 'open') return unchanged(stored);
  const after = { ...part, step };
  switch (state) {
    case 'committed':
      return ended(state, changed(stored, after, charged(totals, limits)), nowMs);
    case 'rolled-back':
      return ended(state, changed(stored, after, none(part.taken)), nowMs);
    case 'open': {
      if (step <= (part.step ?? 0)) return unchanged(stored);
      const followed = changed(stored, after, charged(totals, limits));
      return isReleased ? released(followed) : followed;
    }
  }
}

function endsAs({ kind }: PortableOperation): ClosedState | null {
  if (kind === 'commit') return 'committed';
  return kind === 'rollback' ? 'rolled-back' : null;
}

function none(taken: readonly Amount[]): readonly Amount[] {
  return taken.map(({ name }) => ({ name, milli: 0 }));
}

/** The account of a lease as its holder keeps it. */
export function partOf({ portable, rates }: Holder): PortablePart {
  return portable ?? { state: 'open', taken: rates ?? [], adjusts: [] };
}

function nextStep(part: PortablePart): PortablePart {
  return { ...part, step: (part.step ?? 0) + 1 };
}

function unchanged(holder: Holder): PortableEffect {
  return { kind: 'done', due: [], slotsBack: [], holder };
}

type Done = Extract<PortableEffect, { readonly kind: 'done' }>;

/** The step counts changes of the account only, so that a repeated operation answers the same. */
function decided(
  stored: Holder,
  part: PortablePart,
  { totals, forParents }: Wanted,
  adjusts: readonly string[],
): PortableEffect {
  const after = { ...part, ...forParents, adjusts };
  const isSame = changed(stored, part, totals).due.length === 0 && isSameForParents(part, after);
  if (!isSame) return changed(stored, nextStep(after), totals);
  return adjusts === part.adjusts ? unchanged(stored) : changed(stored, after, totals);
}

function changed(stored: Holder, part: PortablePart, totals: readonly Amount[]): Done {
  const due = totals
    .map(({ name, milli }) => ({ name, milli: sub(milli, amountOf(part.taken, name) ?? 0) }))
    .filter(({ milli }) => milli !== 0);
  const others = part.taken.filter(({ name }) => amountOf(totals, name) === undefined);
  const taken = [...others, ...totals].filter(({ milli }) => milli !== 0);
  const holder = { ...stored, rates: stored.rates === null ? null : taken, portable: { ...part, taken } };
  return { kind: 'done', due, slotsBack: [], holder };
}

function released({ due, holder }: Done): PortableEffect {
  const portable = { ...partOf(holder), released: true as const };
  return { kind: 'done', due, slotsBack: holder.slots, holder: { ...holder, slots: [], portable } };
}

/** The holder that stays as a trace, so that a repeat gets the same answer. Its expiry gives nothing back. */
function ended(state: ClosedState, { due, holder }: Done, nowMs: EpochMs): PortableEffect {
  const { released: _released, ...part } = partOf(holder);
  const expiresAtMs = Math.max(holder.expiresAtMs, nowMs + TRACE_LIFE_MS);
  const trace = { ...holder, expiresAtMs, slots: [], rates: null, portable: { ...part, state } };
  return { kind: 'done', due, slotsBack: holder.slots, holder: trace };
}
