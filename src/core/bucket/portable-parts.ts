import { add, type Int } from '../int.js';
import type { Amount, Holder, ParentAmount, PortablePart } from './decide.js';

/** The holder of a lease on several shards of one bucket. undefined: one of its parts no longer exists. */
export function joinHolders(parts: readonly (Holder | undefined)[]): Holder | undefined {
  let whole: Holder | undefined;
  for (const part of parts) {
    if (part === undefined) return undefined;
    whole = whole === undefined ? part : joined(whole, part);
  }
  return whole;
}

function joined(first: Holder, other: Holder): Holder {
  const { portable } = first;
  return {
    ...first,
    slots: addAmounts(first.slots, other.slots),
    rates: first.rates === null ? null : addAmounts(first.rates, other.rates ?? []),
    ...(portable === undefined ? {} : { portable: joinParts(portable, other.portable) }),
  };
}

/**
 * The account of a lease on two shards. The first shard decides the state. The steps add up: an operation changes all
 * shards in one transaction, so that the sum grows with every change.
 */
export function joinParts(first: PortablePart, other: PortablePart | undefined): PortablePart {
  if (other === undefined) return first;
  const step = (first.step ?? 0) + (other.step ?? 0);
  const forParents = addParentAmounts(first.forParents ?? [], other.forParents ?? []);
  return {
    ...first,
    taken: addAmounts(first.taken, other.taken),
    ...(step === 0 ? {} : { step }),
    ...(forParents.length === 0 ? {} : { forParents }),
  };
}

function addParentAmounts(a: readonly ParentAmount[], b: readonly ParentAmount[]): readonly ParentAmount[] {
  const isTotal = (name: string): boolean => [...a, ...b].find((one) => one.name === name)?.isTotal === true;
  return addAmounts(a, b).map(({ name, milli }) => ({ name, milli, isTotal: isTotal(name) }));
}

/** The sum of each limit. */
export function addAmounts(a: readonly Amount[], b: readonly Amount[]): readonly Amount[] {
  const sums = new Map<string, Int>();
  for (const { name, milli } of [...a, ...b]) sums.set(name, add(sums.get(name) ?? 0, milli));
  return [...sums].map(([name, milli]) => ({ name, milli }));
}
