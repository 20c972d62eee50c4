import type { LevelAnswer, LevelAsk, LevelChange } from '../../../../backend.js';
import type { Amount } from '../../../../core/bucket/decide.js';
import { isConsumed } from '../../../../core/limit.js';
import type { AskEntry, ChangeEntry, Doubt, Entry, EntryResult } from './entries.js';
import type { ShardImage } from '../../table/items.js';

/**
 * What is in doubt after a write with this result got no answer. Of several writes only the last matters: bases only
 * grow, so a write that requires an earlier base cannot land any more.
 */
export function doubtOf(entry: Entry, result: EntryResult | null, seen: ShardImage | null): Doubt | null {
  if (entry.kind !== 'ask' || entry.level.holder === null || result?.kind !== 'granted') return null;
  // A dry run is in no write.
  if (entry.dryRun === true) return null;
  return { baseMs: seen?.baseMs ?? null, answer: result.answer };
}

/**
 * Gives back what an ask may have taken, if its holder shows that it did. A write of that ask that is still under way
 * must not land afterwards, so the base that it requires is moved first.
 */
export function revocationOf(ask: AskEntry, { baseMs, answer }: Doubt): ChangeEntry {
  return { ...revocationOfGrant(ask, ratesOf(answer), untakenOf(answer)), fences: baseMs };
}

/** For a grant that was answered, so that no write of it is under way. */
export function revocationOfGrant(
  ask: AskEntry,
  rates: readonly Amount[],
  untaken: readonly Amount[] = [],
): ChangeEntry {
  return {
    kind: 'change',
    level: { ...refOf(ask.level), kind: 'deltas', deltas: rates, holder: 'release' },
    leaseId: ask.leaseId ?? '',
    nowMs: ask.nowMs,
    uncounts: ask.counts,
    ...(untaken.length === 0 ? {} : { untaken }),
    onlyIfHeld: true,
  };
}

/**
 * The change that undoes a grant. If an expiry has given the rates of its holder back meanwhile, nothing is due: the lease
 * has taken 0 in all.
 */
export function undoOf(level: LevelAsk, answer: LevelAnswer): LevelChange {
  const rates = ratesOf(answer);
  const ref = { ...refOf(level), place: answer.place };
  if (level.holder === null) return { ...ref, kind: 'deltas', deltas: rates, holder: 'none' };
  if (level.holder.rates === null) return { ...ref, kind: 'deltas', deltas: rates, holder: 'release' };
  const totals = rates.map(({ name, milli }) => ({ name, milli: 0, deltaMilli: milli }));
  return { ...ref, kind: 'totals', totals, holder: 'release' };
}

/** The rates and unlimited amounts to give back, as negative amounts. */
export function ratesOf({ verdicts }: LevelAnswer): readonly Amount[] {
  return verdicts
    .filter(({ limit, waitMs }) => isConsumed(limit.kind) && waitMs === 0)
    .map(({ limit, requestedMilli }) => ({ name: limit.name, milli: -requestedMilli }));
}

/** What a grant counted of shadows that were short, without taking it. */
export function untakenOf({ verdicts }: LevelAnswer): readonly Amount[] {
  return verdicts
    .filter(({ limit, waitMs }) => isConsumed(limit.kind) && waitMs !== 0)
    .map(({ limit, requestedMilli }) => ({ name: limit.name, milli: requestedMilli }));
}

function refOf({ entityId, resource, limits, version, lasting }: LevelAsk) {
  return { entityId, resource, limits, version, ...(lasting === undefined ? {} : { lasting }) };
}
