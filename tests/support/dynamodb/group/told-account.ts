import type { ChangeEntry, Entry, EntryResult } from '../../../../src/backends/dynamodb/bucket/group/entries.js';
import type { ShardImage } from '../../../../src/backends/dynamodb/table/items.js';
import { amountOf } from '../../../../src/core/bucket/decide.js';
import { deltasOf } from '../../../../src/core/bucket/holder-rules.js';
import type { Driven, Landing, Told } from './drive-group.js';

/** What a group has made of a stored shard. */
interface Outcome extends Pick<Driven, 'told' | 'landings' | 'maintenance'> {
  /** The shard before the first write. */
  readonly truth: ShardImage;
  readonly entries: readonly Entry[];
}

export const isError = (told: Told): told is { readonly error: unknown } => typeof told === 'object' && 'error' in told;
export const isResult = (told: Told): told is EntryResult => typeof told === 'object' && 'kind' in told;

/** What all writes of the group have added to the consumption of a rate, without those of foreign writers. */
export function consumedBy({ landings, maintenance }: Outcome, name: string): bigint {
  return [...landings, ...maintenance].reduce(
    (sum, { before, after }) => sum + consumedIn(after, name) - consumedIn(before, name),
    0n,
  );
}

/**
 * The least that the group must have added to the consumption of a rate, after what its callers were told. A caller that
 * was told a result counts on it; a caller that was told an error may find its change in the store, or not.
 */
export function leastTold(outcome: Outcome, name: string): bigint {
  const { entries, told } = outcome;
  const ofEntries = entries.reduce((sum, entry, index) => {
    const one = told[index]!;
    if (entry.kind === 'ask') return sum + grantedOf(one, name);
    return entry.kind === 'change' ? sum + leastOfChange(outcome, { entry, index, one }, name) : sum;
  }, 0n);
  return ofEntries - reclaimed(outcome, name);
}

/** A grant takes what its verdicts say, and counts what a short shadow did not take. Every other answer takes nothing. */
function grantedOf(told: Told, name: string): bigint {
  if (!isResult(told) || told.kind !== 'granted') return 0n;
  const found = told.answer.verdicts.find(({ limit }) => limit.name === name);
  return BigInt(found?.requestedMilli ?? 0);
}

interface ToldChange {
  readonly entry: ChangeEntry;
  readonly index: number;
  readonly one: Told;
}

function leastOfChange(outcome: Outcome, change: ToldChange, name: string): bigint {
  const { due, countsOnce } = dueOf(outcome, change, name);
  const refund = due < 0n ? due : 0n;
  const again = countsOnce ? 0n : BigInt(unheardOf(outcome, change)) * refund;
  if (isResult(change.one)) return due + again;
  return (isError(change.one) ? refund : 0n) + again;
}

interface Due {
  readonly due: bigint;
  /** However often the change is written: its first write also changes the holder. */
  readonly countsOnce: boolean;
}

/**
 * What a change adds: the lease's own difference. If an expiry gives rates back, the change sets what the lease has taken:
 * where its holder carries an amount, the difference to it is due, and the lease's own difference only if no holder carries
 * the rate. If the holder was reclaimed, or another change has released it, the whole amount is due.
 */
function dueOf(outcome: Outcome, { entry: { level, leaseId }, index, one }: ToldChange, name: string): Due {
  const delta = BigInt(amountOf(deltasOf(level), name) ?? 0);
  if (level.refundsOnExpiry !== true) return { due: delta, countsOnce: false };
  const total = level.amounts.find((amount) => amount.name === name);
  if (total === undefined) return { due: 0n, countsOnce: true };
  const isLost = isResult(one) && one.kind === 'done' && one.holderLost;
  if (isReclaimed(outcome, leaseId) || (isLost && !hasReleased(outcome, index))) {
    return { due: BigInt(total.toMilli), countsOnce: true };
  }
  const carried = carriedBy(outcome.truth, leaseId, name);
  if (carried === undefined) return { due: delta, countsOnce: false };
  return { due: BigInt(total.toMilli) - carried, countsOnce: true };
}

/** Whether a write with this release has found the holder, also if its caller was told that there is none. */
function hasReleased({ landings }: Outcome, index: number): boolean {
  return landings.some(({ results }) => {
    const result = results.get(index);
    return result?.kind === 'done' && !result.holderLost;
  });
}

/**
 * How often the store has got a change without its sender knowing: what no holder protects counts again. A holder may have
 * proven one of these writes. Then its sender knows it, and the caller was told its result.
 */
function unheardOf({ landings }: Outcome, { index, one }: ToldChange): number {
  const isTold = ({ results }: Landing): boolean => results.get(index) === one;
  const unheard = landings.filter(({ isUnheard, results }) => isUnheard && (results.get(index) ?? null) !== null);
  const isProven = unheard.some(isTold) && !landings.some((landing) => !landing.isUnheard && isTold(landing));
  return unheard.length - Number(isProven);
}

/**
 * What the reclaims of the group gave back. A lost write may have changed what the holder carried before, and has changed
 * the consumption by the same amount: together they give back what the holder carried in the beginning.
 */
function reclaimed(outcome: Outcome, name: string): bigint {
  return [...outcome.truth.holders.keys()]
    .filter((leaseId) => isReclaimed(outcome, leaseId))
    .reduce((sum, leaseId) => sum + (carriedBy(outcome.truth, leaseId, name) ?? 0n), 0n);
}

function isReclaimed({ maintenance }: Outcome, leaseId: string): boolean {
  return maintenance.some(({ before, after }) => before.holders.has(leaseId) && !after.holders.has(leaseId));
}

function carriedBy({ holders }: ShardImage, leaseId: string, name: string): bigint | undefined {
  const milli = amountOf(holders.get(leaseId)?.rates ?? [], name);
  return milli === undefined ? undefined : BigInt(milli);
}

function consumedIn({ limits }: ShardImage, name: string): bigint {
  return BigInt(limits.find(({ limit }) => limit.name === name)?.consumedMilli ?? 0);
}
