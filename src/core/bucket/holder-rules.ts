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
 * that is short is not taken. An expiry follows soon, so that only an older config matters to it; the operations of a
 * portable lease may come much later, when the bucket has got such a limit.
 */
export function takenHolder(holder: Holder, verdicts: readonly Verdict[], configIsOlder: boolean): Holder {
  const cut = verdicts.find((verdict) => verdict.cut === true);
  const { rates, slots, portable } =
    cut === undefined ? holder : holderWith(holder, { name: cut.limit.name, milli: cut.requestedMilli });
  const untaken = verdicts.filter(({ waitMs, shadow }) => shadow === true && waitMs !== 0);
  const isWhole =
    cut === undefined && untaken.length === 0 && portable === undefined && (!configIsOlder || rates === null);
  if (isWhole) return holder;
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

/** Adds the deltas to what the lease has taken, whether or not its holder still exists. */
export interface RateDeltas {
  readonly kind: 'deltas';
  /** A positive delta takes more and may cause debt; a negative delta gives back. Of rates and unlimited limits. */
  readonly deltas: readonly Amount[];
}

/** Sets what the lease has taken. For a holder whose expiry gives rates back: once it is lost, the whole totals are due. */
export interface RateTotals {
  readonly kind: 'totals';
  /** All rates and unlimited limits of the lease, also those that do not change. */
  readonly totals: readonly RateTotal[];
}

/** What a lease has taken from a rate after a change, and the difference to what it had taken before. */
export interface RateTotal extends Amount {
  readonly deltaMilli: Millitokens;
}

export type RateChange = RateDeltas | RateTotals;

/** The differences as the lease knows them. What is due may differ: a write may have landed, or the holder expired. */
export function deltasOf(change: RateChange): readonly Amount[] {
  if (change.kind === 'deltas') return change.deltas;
  return change.totals.map(({ name, deltaMilli }) => ({ name, milli: deltaMilli }));
}

/** What a change takes (positive) or gives back (negative), if the bucket has this holder of the lease. */
export function amountsDue(change: RateChange, stored: Holder | undefined): readonly Amount[] {
  if (change.kind === 'deltas') return change.deltas;
  // An expiry gave the rates back, so the whole amount is due again.
  if (stored === undefined) return change.totals;
  return change.totals.map(({ name, milli, deltaMilli }) => {
    // The holder carries what was taken, so a change that landed without an answer is not made again.
    const carriedMilli = amountOf(stored.rates ?? [], name);
    return { name, milli: carriedMilli === undefined ? deltaMilli : sub(milli, carriedMilli) };
  });
}

/** The holder that stays after a change. A limit that the bucket lacks is not charged, also if it is added again later. */
export function keptHolder(stored: Holder, change: RateChange, limits: readonly Pick<LimitBalance, 'limit'>[]): Holder {
  if (change.kind === 'deltas' || stored.rates === null) return stored;
  const charged = change.totals.filter(({ name }) =>
    limits.some(({ limit }) => isConsumed(limit.kind) && limit.name === name),
  );
  return { ...stored, rates: charged.map(({ name, milli }) => ({ name, milli })) };
}
