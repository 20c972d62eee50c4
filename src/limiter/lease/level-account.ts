import type { ChangeProgress, GrantLocation, LevelAsk, LevelChange, LevelRef, LevelResult } from '../../backend.js';
import { type Amount, wholeTokens } from '../../core/bucket/decide.js';
import { type AmountChange, deltasOf } from '../../core/bucket/holder-rules.js';
import { ValidationError } from '../../core/errors.js';
import { add, type Int, sub } from '../../core/int.js';
import { isConsumed } from '../../core/limit-kind.js';
import { holdsSlotsOf, kindOf } from '../acquire/levels.js';
import type { LeaseOperation } from './lease-operation.js';

/** What was taken at one level, and where the store recorded it. */
export interface GrantedLevel extends LevelAsk {
  readonly place?: GrantLocation;
  /** Shadows that were short and of which nothing was taken. */
  readonly untaken?: ReadonlySet<string>;
}

/** What a lease has taken at one level, as this process knows it. */
export interface LevelAccount extends LevelRef {
  readonly place: GrantLocation;
  readonly progress: ChangeProgress;
  limits: LevelRef['limits'];
  version: LevelRef['version'];
  /** In millitokens, for rates and slots. */
  readonly taken: Map<string, Int>;
  /** Shadows of which nothing was taken. Corrections of them change nothing. */
  readonly untaken: ReadonlySet<string> | undefined;
  /** Whether the bucket keeps a holder of this lease. */
  held: boolean;
  readonly refundsOnExpiry: boolean;
}

export function openLevel(granted: GrantedLevel): LevelAccount {
  const { entityId, resource, limits, version, lasting, asks, holder, place, untaken } = granted;
  return {
    entityId,
    resource,
    limits,
    version,
    ...(lasting === undefined ? {} : { lasting }),
    place,
    progress: {},
    untaken,
    taken: new Map(asks.map(({ name, milli }) => [name, milli])),
    held: holder !== null,
    refundsOnExpiry: holder !== null && holder.rates !== null,
  };
}

/**
 * The rates of a level that an operation changes, with their new totals. null: the rates stay, also if an expiry gave
 * them back.
 */
export function totalsAfter(level: LevelAccount, operation: LeaseOperation): readonly Amount[] | null {
  switch (operation.kind) {
    case 'settle':
    case 'commit':
      return operation.totals.filter(({ name }) => isCharged(level, name));
    case 'adjust':
      return operation.deltas.filter(({ name }) => isCharged(level, name)).map((delta) => totalWith(level, delta));
    case 'rollback':
      return returned(level, null);
    case 'keep':
      return returned(level, operation.names);
    case 'release':
      return null;
  }
}

/** A lease gives back at most what it took. More would create tokens. */
function totalWith(level: LevelAccount, { name, milli: delta }: Amount): Amount {
  const taken = level.taken.get(name) ?? 0;
  const milli = add(taken, delta);
  if (milli >= 0) return { name, milli };
  const least = `at least -${wholeTokens(taken)}, what was taken`;
  throw new ValidationError(`deltas.${name}`, least, wholeTokens(delta));
}

/** Gives everything back, except for the named limits. */
function returned(level: LevelAccount, except: ReadonlySet<string> | null): readonly Amount[] {
  return [...level.taken.keys()]
    .filter((name) => isConsumedOf(level, name) && except?.has(name) !== true)
    .map((name) => ({ name, milli: 0 }));
}

/** null: nothing to write at this level. */
export function changeOf(
  level: LevelAccount,
  totals: readonly Amount[] | null,
  fate: 'keep' | 'release',
): LevelChange | null {
  const { entityId, resource, limits, version, lasting = false, place, progress, held } = level;
  const refundsOnExpiry = held && level.refundsOnExpiry;
  const isUnfinished = isPartlyChanged(level);
  const isWhole = isUnfinished || (refundsOnExpiry && totals !== null);
  const amounts = isWhole ? allAmounts(level, totals ?? []) : changedAmounts(level, totals ?? []);
  // The holder must be read to give its slots back, or to find out whether an expiry has already given these totals back.
  const asksHolder = held && (fate === 'release' || (refundsOnExpiry && totals !== null && totals.length > 0));
  if (!asksHolder && !isUnfinished && !amounts.some(isChanged)) return null;
  const holder = held ? fate : 'none';
  // One literal: to spread a reference first takes as long as the rest of a release.
  return { entityId, resource, limits, version, lasting, place, progress, amounts, refundsOnExpiry, holder };
}

/** Whether an earlier change was made in part, or may have been: then even a change of nothing must be written. */
export function isPartlyChanged({ progress }: LevelAccount): boolean {
  return progress.state !== undefined;
}

function changedAmounts({ taken }: LevelAccount, totals: readonly Amount[]): readonly AmountChange[] {
  const amounts = totals.map(({ name, milli }) => ({ name, fromMilli: taken.get(name) ?? 0, toMilli: milli }));
  return amounts.filter(isChanged);
}

function isChanged({ fromMilli, toMilli }: AmountChange): boolean {
  return fromMilli !== toMilli;
}

function allAmounts(level: LevelAccount, totals: readonly Amount[]): readonly AmountChange[] {
  const after = new Map(level.taken);
  for (const { name, milli } of totals) after.set(name, milli);
  return [...after]
    .filter(([name]) => isConsumedOf(level, name))
    .map(([name, toMilli]) => ({ name, fromMilli: level.taken.get(name) ?? 0, toMilli }));
}

/** Books a change that the store has made. */
export function bookChange(
  level: LevelAccount,
  change: LevelChange,
  totals: readonly Amount[],
  { holderLost, holds }: Extract<LevelResult, { readonly kind: 'done' }>,
): void {
  for (const { name, milli } of totals) level.taken.set(name, milli);
  if (!level.held) return;
  // The settle or commit after this release must charge again what an expiry gave back.
  const isUnpaid = holderLost && change.refundsOnExpiry === true && change.amounts.length === 0;
  level.held = holds ?? (isUnpaid || (change.holder === 'keep' && !holderLost));
  if (holderLost || change.holder === 'release' || !level.held) {
    for (const name of level.taken.keys()) if (holdsSlotsOf(level, name)) level.taken.delete(name);
  }
}

/** The amounts that a completed change, which is not booked yet, has returned to the bucket. */
export function givenBack({ limits, taken }: LevelAccount, change: LevelChange): readonly Amount[] {
  const refunds = deltasOf(change).filter(({ milli }) => milli < 0);
  const rates = refunds.map(({ name, milli }) => ({ name, milli: sub(0, milli) }));
  if (change.holder !== 'release') return rates;
  const slots = [...taken].filter(([name]) => holdsSlotsOf({ limits }, name));
  return [...rates, ...slots.map(([name, milli]) => ({ name, milli }))];
}

/**
 * Books a refund that may have landed as done. Sending it again could give back twice, which would admit too much. Debits
 * are sent again; a holder can be removed only once. False: the totals contain no refund.
 */
export function bookRefunds({ taken }: LevelAccount, totals: readonly Amount[]): boolean {
  const refunds = totals.filter(({ name, milli }) => milli < (taken.get(name) ?? 0));
  for (const { name, milli } of refunds) taken.set(name, milli);
  return refunds.length > 0;
}

export function hasLimit(level: LevelRef, name: string): boolean {
  return kindOf(level, name) !== undefined;
}

export function isConsumedOf(level: LevelRef, name: string): boolean {
  const kind = kindOf(level, name);
  return kind !== undefined && isConsumed(kind);
}

function isCharged(level: LevelAccount, name: string): boolean {
  return hasLimit(level, name) && level.untaken?.has(name) !== true;
}
