import type { LevelAnswer, LevelAsk, LevelChange } from '../../../../backend.js';
import type { Amount } from '../../../../core/bucket/decide.js';
import { changesBy } from '../../../../core/bucket/holder-rules.js';
import { isConsumed } from '../../../../core/limit-kind.js';
import type { AskEntry, ChangeEntry, Doubt, Entry, EntryResult } from './entries.js';
import type { ShardImage } from '../../table/items.js';
import type { ShardWrite } from '../shard-write.js';

/** What is in doubt for an entry after a write with this result got no answer. null: nothing. */
export function doubtOf(
  entry: Entry,
  result: EntryResult | null,
  { seen, write }: { readonly seen: ShardImage | null; readonly write: ShardWrite },
): Doubt | null {
  // A dry run adds no holder.
  if (entry.kind !== 'ask' || result?.kind !== 'granted') return null;
  const holderText = addedHolder(write, entry.leaseId);
  if (holderText === null) return null;
  return { baseMs: seen?.baseMs ?? null, grants: [{ holderText, answer: result.answer }] };
}

/** The holder that the write adds for the lease. null: none. */
export function addedHolder({ holders }: ShardWrite, leaseId: string | null): string | null {
  for (const holder of holders) if (holder.kind === 'add' && holder.leaseId === leaseId) return holder.text;
  return null;
}

/** The doubt after a further write of an ask. */
export function joinDoubts(earlier: Doubt | undefined, later: Doubt): Doubt {
  const known = later.grants.map(({ holderText }) => holderText);
  const others = earlier?.grants.filter(({ holderText }) => !known.includes(holderText)) ?? [];
  return { ...later, grants: [...others, ...later.grants] };
}

/**
 * Give back what an ask may have taken, if its holder shows that it did. A write of that ask that is still under way
 * must not land afterwards, so the base that it requires is moved first.
 */
export function revocationsOf(ask: AskEntry, { baseMs, grants }: Doubt): readonly ChangeEntry[] {
  return grants.map(({ holderText, answer }) => {
    return { ...revocationOfGrant(ask, ratesOf(answer), untakenOf(answer)), fences: baseMs, holderText };
  });
}

/** For a grant that was answered, so that no write of it is under way. */
export function revocationOfGrant(
  ask: AskEntry,
  rates: readonly Amount[],
  untaken: readonly Amount[] = [],
): ChangeEntry {
  return {
    kind: 'change',
    level: { ...refOf(ask.level), amounts: changesBy(rates), holder: 'release' },
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
  const change = { ...refOf(level), place: answer.place, amounts: changesBy(ratesOf(answer)) };
  if (level.holder === null) return { ...change, holder: 'none' };
  if (level.holder.rates === null) return { ...change, holder: 'release' };
  return { ...change, holder: 'release', refundsOnExpiry: true };
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
