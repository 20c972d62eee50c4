import { add, type Int, max, sub } from '../int.js';
import { isConsumed } from '../limit-kind.js';
import { type Amount, amountOf, type LimitBalance, type ParentAmount, type PortablePart } from './decide.js';

export type Limits = readonly Pick<LimitBalance, 'limit'>[];

/** An amount that is stated for the parents only, with what the acquire took there. */
export interface StatedAmount extends Amount {
  readonly grantedMilli: Int;
}

/** States what the lease has taken. `commit` ends it. */
export interface StatedTotals {
  readonly kind: 'settle' | 'commit';
  readonly totals: readonly Amount[];
  /** Limits of which a parent was granted another amount than this level. Left out: none. */
  readonly stated?: readonly StatedAmount[];
  /** The lease is lost at the first level, so nothing is given back: a total that is less changes nothing. */
  readonly raises?: true;
}

/** Adds to what the lease has taken, or gives part of it back. Counts once while its id is among the last four. */
export interface StatedDeltas {
  readonly kind: 'adjust';
  readonly id: string;
  readonly deltas: readonly Amount[];
  /** As in totals, as differences. */
  readonly stated?: readonly StatedAmount[];
}

/** What an operation makes of the account: what this bucket charges, and what only the parents charge. */
export interface Wanted {
  readonly totals: readonly Amount[];
  readonly forParents: Pick<PortablePart, 'forParents'>;
}

export function wantedTotals(
  { taken, forParents = [] }: PortablePart,
  { totals, stated = [], raises }: StatedTotals,
  limits: Limits,
): Wanted {
  const wanted = raises === true ? totals.map((total) => atLeast(taken, total)) : totals;
  const others = [...uncharged(wanted, stated, limits), ...stated];
  const set = others.map(({ name, milli }) => ({ name, milli, isTotal: true }));
  return { totals: charged(wanted, limits), forParents: withOthers(forParents, set, wanted) };
}

/** A lease gives back at most what it took. */
export function wantedSums(
  { taken, forParents = [] }: PortablePart,
  { deltas, stated = [] }: StatedDeltas,
  limits: Limits,
): Wanted {
  const kept = (name: string): ParentAmount | undefined => forParents.find((other) => other.name === name);
  const totals = charged(deltas, limits).map(({ name, milli }) => {
    return { name, milli: max(0, add(amountOf(taken, name) ?? 0, milli)) };
  });
  const removed = uncharged(deltas, stated, limits).map(({ name, milli }) => {
    const before = kept(name)?.milli ?? amountOf(taken, name) ?? 0;
    return { name, milli: max(0, add(before, milli)), isTotal: true };
  });
  const changedOthers = stated.map(({ name, milli, grantedMilli }) => {
    const { milli: before, isTotal } = kept(name) ?? { milli: 0, isTotal: false };
    return { name, milli: max(isTotal ? 0 : sub(0, grantedMilli), add(before, milli)), isTotal };
  });
  return { totals, forParents: withOthers(forParents, [...removed, ...changedOthers], deltas) };
}

/** `named`: what the operation names. Where this bucket charges it again, its own amount holds for the parents too. */
function withOthers(
  before: readonly ParentAmount[],
  set: readonly ParentAmount[],
  named: readonly Amount[],
): Pick<PortablePart, 'forParents'> {
  const isNamed = (name: string): boolean => [...set, ...named].some((one) => one.name === name);
  const others = before.filter(({ name }) => !isNamed(name));
  const forParents = [...others, ...set];
  return forParents.length === 0 && before.length === 0 ? {} : { forParents };
}

function atLeast(taken: readonly Amount[], { name, milli }: Amount): Amount {
  return { name, milli: max(milli, amountOf(taken, name) ?? 0) };
}

/** A limit that the bucket lacks is not charged. */
export function charged(totals: readonly Amount[], limits: Limits): readonly Amount[] {
  return totals.filter(({ name }) => charges(limits, name));
}

/** What only the parents may charge, and is not stated for them. */
function uncharged(totals: readonly Amount[], stated: readonly Amount[], limits: Limits): readonly Amount[] {
  return totals.filter(({ name }) => !charges(limits, name) && amountOf(stated, name) === undefined);
}

function charges(limits: Limits, name: string): boolean {
  return limits.some(({ limit }) => limit.name === name && isConsumed(limit.kind));
}

/** Whether two answers say the same of the account of a lease. */
export function isSameAccount(a: PortablePart, b: PortablePart): boolean {
  const isSameStep = a.state === b.state && a.step === b.step && a.released === b.released;
  return isSameStep && isSameAmounts(a.taken, b.taken) && isSameForParents(a, b);
}

export function isSameForParents({ forParents: a = [] }: PortablePart, { forParents: b = [] }: PortablePart): boolean {
  const isSameKind = ({ name, isTotal }: ParentAmount): boolean =>
    b.find((one) => one.name === name)?.isTotal === isTotal;
  return isSameAmounts(a, b) && a.every(isSameKind);
}

function isSameAmounts(a: readonly Amount[], b: readonly Amount[]): boolean {
  return a.length === b.length && a.every(({ name, milli }) => amountOf(b, name) === milli);
}
