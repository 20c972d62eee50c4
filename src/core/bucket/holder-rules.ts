import { holderWith } from './at-most.js';
import { type Amount, amountOf, type Holder, type LimitBalance, type Verdict } from './decide.js';
import { sub } from '../int.js';
import { holdsSlots, isConsumed } from '../limit-kind.js';
import type { Millitokens } from '../units.js';

/**
 * Whether an ask by an older config takes slots without a holder: that config treats as a rate what has slots now. The
 * slots would never be given back, so the client must read its config again and retry.
 */
export function takesUnheldSlots(
  { holder }: { readonly holder: Holder | null },
  verdicts: readonly Verdict[],
): boolean {
  return verdicts.some(
    ({ limit, requestedMilli }) =>
      holdsSlots(limit.kind) && requestedMilli > 0 && amountOf(holder?.slots ?? [], limit.name) === undefined,
  );
}

/**
 * The holder to store. What was not taken must not be given back: an ask may name rates that the bucket lacks, and a shadow
 * that is short is not taken. The bucket may get such a limit before the lease ends or expires.
 */
export function takenHolder(holder: Holder, verdicts: readonly Verdict[]): Holder {
  const cut = verdicts.find((verdict) => verdict.cut === true);
  const { rates, slots, portable } =
    cut === undefined ? holder : holderWith(holder, { name: cut.limit.name, milli: cut.requestedMilli });
  const untaken = verdicts.filter(({ waitMs, shadow }) => shadow === true && waitMs !== 0);
  if (cut === undefined && untaken.length === 0 && portable === undefined && rates === null) return holder;
  const taken = (amounts: readonly Amount[]): readonly Amount[] =>
    amounts.filter(
      ({ name }) =>
        !names(untaken, name) && verdicts.some(({ limit }) => limit.name === name && isConsumed(limit.kind)),
    );
  return {
    ...holder,
    slots: slots.filter(({ name }) => !names(untaken, name)),
    rates: rates && taken(rates),
    ...(portable === undefined ? {} : { portable: { ...portable, taken: taken(portable.taken) } }),
  };
}

function names(verdicts: readonly Verdict[], name: string): boolean {
  return verdicts.some(({ limit }) => limit.name === name);
}

/** What a lease has taken from a rate or an unlimited limit before a change, and after it. */
export interface AmountChange {
  readonly name: string;
  readonly fromMilli: Millitokens;
  /** More than before may cause debt. Less gives back. */
  readonly toMilli: Millitokens;
}

/** A change of what a lease has taken from the rates and unlimited limits of a bucket. */
export interface RateChange {
  readonly amounts: readonly AmountChange[];
  /**
   * The holder carries the amounts, and its expiry gives them back: if it no longer exists, the whole amounts are due. Then
   * a change that keeps the holder names all that the lease has taken, also what stays.
   */
  readonly refundsOnExpiry?: boolean;
}

/** The changes that take these amounts (positive) or give them back (negative). */
export function changesBy(deltas: readonly Amount[]): readonly AmountChange[] {
  return deltas.map(({ name, milli }) =>
    milli < 0 ? { name, fromMilli: sub(0, milli), toMilli: 0 } : { name, fromMilli: 0, toMilli: milli },
  );
}

/** The differences as the lease knows them. What is due may differ: a write may have landed, or the holder expired. */
export function deltasOf({ amounts }: RateChange): readonly Amount[] {
  return amounts.map(({ name, fromMilli, toMilli }) => ({ name, milli: sub(toMilli, fromMilli) }));
}

/** What a change takes (positive) or gives back (negative), if the bucket has this holder of the lease. */
export function amountsDue(change: RateChange, stored: Holder | undefined): readonly Amount[] {
  if (change.refundsOnExpiry !== true) return deltasOf(change);
  return change.amounts.map(({ name, fromMilli, toMilli }) => {
    // An expiry gave the rates back, so the whole amount is due again.
    if (stored === undefined) return { name, milli: toMilli };
    // The holder carries what was taken, so a change that landed without an answer is not made again.
    return { name, milli: sub(toMilli, amountOf(stored.rates ?? [], name) ?? fromMilli) };
  });
}

/** The holder that stays after a change. A limit that the bucket lacks is not charged, also if it is added again later. */
export function keptHolder(stored: Holder, change: RateChange, limits: readonly Pick<LimitBalance, 'limit'>[]): Holder {
  if (change.refundsOnExpiry !== true || stored.rates === null) return stored;
  const charged = change.amounts.filter(({ name }) =>
    limits.some(({ limit }) => isConsumed(limit.kind) && limit.name === name),
  );
  return { ...stored, rates: charged.map(({ name, toMilli }) => ({ name, milli: toMilli })) };
}
