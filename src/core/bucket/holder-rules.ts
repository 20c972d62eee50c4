import { type Amount, amountOf, type Holder, type LimitBalance, type Verdict } from './decide.js';
import { sub } from '../int.js';
import { holdsSlots, isConsumed } from '../limit-kind.js';

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

/** The holder to store. An older config may name rates that the bucket lacks: what was not taken must not be given back. */
export function takenHolder(holder: Holder, verdicts: readonly Verdict[], configIsOlder: boolean): Holder {
  if (!configIsOlder || holder.rates === null) return holder;
  return { ...holder, rates: holder.rates.filter(({ name }) => verdicts.some(({ limit }) => limit.name === name)) };
}

/** The amounts that a change charges. A limit that the bucket lacks is not charged, also if it is added again later. */
export function chargedRates(
  limits: readonly Pick<LimitBalance, 'limit'>[],
  totals: readonly Amount[],
): readonly Amount[] {
  return totals.filter(({ name }) => limits.some(({ limit }) => isConsumed(limit.kind) && limit.name === name));
}

/** What a change takes (positive) or gives back (negative). `totals`: what the lease has taken after the change. */
export function amountsDue(
  { deltas, totals }: { readonly deltas: readonly Amount[]; readonly totals: readonly Amount[] | null },
  stored: Holder | undefined,
  holderLost: boolean,
): readonly Amount[] {
  if (totals === null) return deltas;
  // An expiry gave the rates back, so the whole amount is due again.
  if (holderLost) return totals;
  // The holder carries what was taken, so a change that landed without an answer is not made again.
  const carried = stored?.rates ?? [];
  const isCarried = ({ name }: Amount): boolean => amountOf(carried, name) !== undefined;
  const corrected = totals.filter(isCarried).map(({ name, milli }) => {
    return { name, milli: sub(milli, amountOf(carried, name) ?? 0) };
  });
  return [...corrected, ...deltas.filter((delta) => !isCarried(delta))];
}
