import type { LevelOperation } from '../../backend.js';
import { type Amount, amountOf, type Holder } from '../../core/bucket/decide.js';
import type { FollowedAccount, PortableOperation, PortablePart } from '../../core/bucket/portable.js';
import type { StatedAmount } from '../../core/bucket/portable-account.js';
import { add, type Int, max, sub } from '../../core/int.js';
import { isConsumed } from '../../core/limit-kind.js';
import { holdsSlotsOf, kindOf } from '../acquire/levels.js';
import { isConsumedOf } from './level-account.js';
import type { LeaseOperation } from './lease-operation.js';
import type { TokenLevel } from './lease-token.js';

/** One level of a portable lease, as this process knows it. */
export interface PortableLevel extends TokenLevel {
  limits: TokenLevel['limits'];
  version: TokenLevel['version'];
  /** What the lease has taken from rates and unlimited limits. */
  taken: readonly Amount[];
  slots: readonly Amount[];
  /** A write found that the holder no longer exists. */
  lost: boolean;
  /** What the lease had taken is charged: an expiry of its holder kept it, or it was charged again after the loss. */
  paid: boolean;
}

export function openPortableLevel(level: TokenLevel, holder: Holder | undefined): PortableLevel {
  const granted = level.granted.filter(({ name }) => !holdsSlotsOf(level, name));
  return {
    ...level,
    taken: holder?.portable?.taken ?? granted,
    slots: holder?.slots ?? [],
    lost: holder === undefined,
    paid: !level.refunds,
  };
}

/**
 * The limits of which a parent was granted another amount than the first level, or that only a parent was granted, with that
 * amount. What the first level charges says nothing of them. Every process reads the same from the token.
 */
export function grantedApart([first, ...parents]: readonly TokenLevel[]): ReadonlyMap<string, Int> {
  const apart = new Map<string, Int>();
  for (const parent of parents) {
    for (const { name, milli } of parent.granted) {
      if (apart.has(name) || !isConsumedOf(parent, name)) continue;
      const own = first !== undefined && isConsumedOf(first, name) ? amountOf(first.granted, name) : undefined;
      if (own !== milli) apart.set(name, milli);
    }
  }
  return apart;
}

/** The operation as the first level decides it for all levels. */
export function decisionAt(
  first: PortableLevel,
  operation: LeaseOperation,
  apart: ReadonlyMap<string, Int>,
  id: string | null,
): LevelOperation {
  const isTaken = ({ name }: Amount): boolean => first.untaken?.has(name) !== true;
  const stated = (amounts: readonly Amount[]): readonly StatedAmount[] =>
    amounts
      .filter((amount) => apart.has(amount.name) || !isTaken(amount))
      .map(({ name, milli }) => ({ name, milli, grantedMilli: apart.get(name) ?? 0 }));
  const decision = (): PortableOperation => {
    switch (operation.kind) {
      case 'settle':
      case 'commit': {
        const { kind, totals } = operation;
        return { kind, totals: totals.filter(isTaken), stated: stated(totals) };
      }
      case 'adjust': {
        const { deltas } = operation;
        return { kind: 'adjust', id: id ?? '', deltas: deltas.filter(isTaken), stated: stated(deltas) };
      }
      case 'keep': {
        const none = [...first.taken.map(({ name }) => name), ...apart.keys()]
          .filter((name) => !operation.names.has(name))
          .map((name) => ({ name, milli: 0 }));
        const own = none.filter(({ name }) => amountOf(first.taken, name) !== undefined);
        return { kind: 'commit', totals: own, stated: stated(none) };
      }
      case 'release':
      case 'rollback':
        return { kind: operation.kind };
    }
  };
  return changeOf(first, decision(), amountsIfLost(first, operation));
}

/** Brings a parent to the account of the first level. */
export function followAt(
  parent: PortableLevel,
  first: PortableLevel,
  { step = 0, state, released, taken, forParents = [] }: PortablePart,
  apart: ReadonlyMap<string, Int>,
): LevelOperation {
  const isOwn = (name: string): boolean => !apart.has(name) && amountOf(forParents, name) === undefined;
  const limits = first.limits.filter(({ name, kind }) => isConsumed(kind) && first.untaken?.has(name) !== true);
  const own = [...limits, ...taken].filter(({ name }) => isOwn(name));
  const totals = [...new Set(own.map(({ name }) => name))].map((name) => ({ name, milli: amountOf(taken, name) ?? 0 }));
  const others = forParents.map(({ name, milli, isTotal }) => {
    const before = isTotal ? 0 : (amountOf(parent.granted, name) ?? 0);
    return { name, milli: max(0, add(before, milli)) };
  });
  const stated = state === 'rolled-back' ? [] : chargedAt(parent, [...totals, ...others]);
  const follow: FollowedAccount = { kind: 'follow', step, state, released: released === true, totals: stated };
  return changeOf(parent, follow, exceeding(parent, merged(parent.taken, stated, 'replace')));
}

/** The operation on a parent while the first level decides nothing, because its holder is gone: it gives no rates back. */
export function raiseAt(parent: PortableLevel, operation: LeaseOperation, id: string | null): LevelOperation {
  const raise = (): PortableOperation => {
    switch (operation.kind) {
      case 'settle':
      case 'commit':
        return { kind: operation.kind, totals: chargedAt(parent, operation.totals), raises: true };
      case 'adjust': {
        const more = operation.deltas.filter(({ milli }) => milli > 0);
        return { kind: 'adjust', id: id ?? '', deltas: chargedAt(parent, more) };
      }
      case 'keep':
        return { kind: 'commit', totals: [], raises: true };
      case 'release':
      case 'rollback':
        return { kind: 'release' };
    }
  };
  return changeOf(parent, raise(), amountsIfLost(parent, operation));
}

function changeOf(
  { entityId, resource, limits, version, lasting, place }: PortableLevel,
  operation: PortableOperation,
  dueIfLost: readonly Amount[],
): LevelOperation {
  const ref = { entityId, resource, limits, version, place, ...(lasting === undefined ? {} : { lasting }) };
  return { ...ref, kind: 'operation', operation, dueIfLost };
}

/** The amounts of limits of this level. */
function chargedAt(level: PortableLevel, amounts: readonly Amount[]): readonly Amount[] {
  return amounts.filter(({ name }) => kindOf(level, name) !== undefined && level.untaken?.has(name) !== true);
}

/**
 * If an expiry has given the rates back, the whole totals are due again. If it has kept them, what exceeds them is due.
 * Nothing is given back: the holder may be gone because the lease has ended.
 */
function amountsIfLost(level: PortableLevel, operation: LeaseOperation): readonly Amount[] {
  switch (operation.kind) {
    case 'settle':
    case 'commit':
      return exceeding(level, merged(level.taken, chargedAt(level, operation.totals), 'replace'));
    case 'adjust':
      return exceeding(level, merged(level.taken, chargedAt(level, operation.deltas), 'add'));
    case 'keep': {
      const none = level.taken.filter(({ name }) => !operation.names.has(name)).map(({ name }) => ({ name, milli: 0 }));
      return exceeding(level, merged(level.taken, none, 'replace'));
    }
    case 'release':
    case 'rollback':
      return [];
  }
}

function exceeding(level: PortableLevel, totals: readonly Amount[]): readonly Amount[] {
  const before = level.paid ? level.taken : [];
  return totals
    .map(({ name, milli }) => ({ name, milli: sub(milli, amountOf(before, name) ?? 0) }))
    .filter(({ milli }) => milli > 0);
}

function merged(a: readonly Amount[], b: readonly Amount[], how: 'add' | 'replace'): readonly Amount[] {
  const sums = new Map<string, Int>(a.map(({ name, milli }) => [name, milli]));
  for (const { name, milli } of b) sums.set(name, how === 'add' ? add(sums.get(name) ?? 0, milli) : milli);
  return [...sums].map(([name, milli]) => ({ name, milli }));
}

/** Books what the store says of the lease. Returns what came back to the bucket. */
export function bookAccount(level: PortableLevel, { state, taken, released }: PortablePart): readonly Amount[] {
  const returned = level.taken
    .map(({ name, milli }) => ({ name, milli: sub(milli, amountOf(taken, name) ?? 0) }))
    .filter(({ milli }) => milli > 0);
  const slots = state === 'open' && released !== true ? [] : level.slots;
  level.taken = taken;
  if (slots.length > 0) level.slots = [];
  return [...returned, ...slots];
}

/** Books what was charged because the holder no longer exists. */
export function bookLoss(level: PortableLevel, due: readonly Amount[]): void {
  level.lost = true;
  level.slots = [];
  level.taken = level.paid ? merged(level.taken, due, 'add') : due;
  level.paid ||= due.length > 0;
}
