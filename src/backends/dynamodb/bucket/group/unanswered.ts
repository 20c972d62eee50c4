import { asPlanned } from '../../../../core/bucket/at-most.js';
import { isSameAccount } from '../../../../core/bucket/portable-account.js';
import type { ShardImage } from '../../table/items.js';
import type { Doubt, Entry, EntryResult } from './entries.js';
import { refunds, refundsWithoutHolder, showsAdditionOf, showsReleaseOf } from './landed-writes.js';
import { doubtOf, joinDoubts } from './revocation.js';
import type { ShardWrite } from '../shard-write.js';

/** A write of a group as it was sent. Entries are named by their position in the group. */
export interface SentWrite {
  readonly id: string;
  /** The image that the write was planned on. null: there was no item. */
  readonly seen: ShardImage | null;
  readonly write: ShardWrite;
  /** The entries that had no answer yet, and the result of each if the write landed. */
  readonly open: readonly number[];
  readonly results: readonly (EntryResult | null)[];
}

/** The writes of a group that got no answer. One of them may have landed, or may still land. */
export interface Unanswered {
  readonly writes: readonly SentWrite[];
  /** Why the last of them got no answer. */
  readonly error: unknown;
  /** The entries whose refund was in the first of these writes, with its error. Their refund is not sent again. */
  readonly lostRefunds: ReadonlyMap<number, unknown>;
  /** What is in doubt for the asks that one of these writes would have granted. */
  readonly doubts: ReadonlyMap<number, Doubt>;
}

export const ALL_ANSWERED: Unanswered = { writes: [], error: null, lostRefunds: new Map(), doubts: new Map() };

export function addUnanswered(
  { writes, lostRefunds, doubts }: Unanswered,
  sent: SentWrite,
  entries: readonly Entry[],
  error: unknown,
): Unanswered {
  const lost = new Map(lostRefunds);
  const doubtful = new Map(doubts);
  for (const [at, index] of sent.open.entries()) {
    const entry = entries[index] as Entry;
    const result = sent.results[at] ?? null;
    // Later writes of the group leave refunds out, so only the first one can contain them.
    if (writes.length === 0 && result !== null && refundsWithoutHolder(entry, sent.write)) lost.set(index, error);
    const doubt = doubtOf(entry, result, sent);
    if (doubt !== null) doubtful.set(index, joinDoubts(doubts.get(index), doubt));
  }
  return { writes: [...writes, sent], error, lostRefunds: lost, doubts: doubtful };
}

/**
 * The entries with the amounts of a write that may have landed: no later write of an ask may take another amount, because
 * its holder does not show which of them landed. So an ask that could be cut to less is denied if this amount is not
 * there: no tokens are taken that its caller does not know of. Its next call is cut again.
 */
export function asSent(entries: readonly Entry[], sent: SentWrite): readonly Entry[] {
  return sent.results.some(isCut) ? entries.map((entry, index) => asIn(sent, entry, index)) : entries;
}

function asIn(sent: SentWrite, entry: Entry, index: number): Entry {
  const result = resultIn(sent, index);
  if (entry.kind !== 'ask' || result?.kind !== 'granted') return entry;
  return { ...entry, level: asPlanned(entry.level, result.answer.verdicts) };
}

function isCut(result: EntryResult | null): boolean {
  return result?.kind === 'granted' && result.answer.verdicts.some(({ cut }) => cut === true);
}

/** The result of an entry if the write landed. null: the write did not contain the entry. */
function resultIn({ open, results }: SentWrite, index: number): EntryResult | null {
  return results[open.indexOf(index)] ?? null;
}

/** Whether the refund of an entry may have landed. */
export function mayHaveRefunded({ writes }: Unanswered, entry: Entry, index: number): boolean {
  return refunds(entry) && writes.some((sent) => resultIn(sent, index) !== null);
}

export interface LandedOptions {
  readonly image: ShardImage;
  readonly open: readonly number[];
  /**
   * The write that the image has just refused. If its request was sent twice, the first may have landed. Its id proves
   * that, but its holders do not: a refused write may have drawn the lease id of another lease.
   */
  readonly refused: SentWrite | null;
  /** Leases that a write of an earlier group may have added. Their holders prove nothing about this group's writes. */
  readonly inDoubt: ReadonlySet<string>;
}

/**
 * The results for the open entries, if this image proves that one of the writes landed, and what remains in doubt then.
 * The id of the last write proves it, and so does a holder that only an unanswered write of this group can have added.
 * null: no proof.
 */
export function landedResults(
  unanswered: Unanswered,
  { image, open, refused, inDoubt }: LandedOptions,
): { readonly results: readonly (EntryResult | null)[]; readonly unanswered: Unanswered } | null {
  const { writes } = unanswered;
  if (refused?.id === image.writeId) return { results: open.map((index) => resultIn(refused, index)), unanswered };
  const isShown = ({ write, seen }: SentWrite): boolean => showsAdditionOf(image, write, seen, inDoubt);
  const last = writes.find(({ id }) => id === image.writeId);
  const candidates = last === undefined ? writes.filter(isShown) : [last];
  const [proven] = candidates;
  if (proven === undefined) return null;
  const rival = last === undefined && refused !== null && isShown(refused) ? refused : null;
  // Several writes may have added the same holder. Then only results that all of them agree on are certain, and the
  // other entries are planned again.
  const results = open.map((index) => {
    const result = resultIn(proven, index);
    const isAgreed = candidates.every((sent) => isSameAnswer(resultIn(sent, index), result));
    return isAgreed && (rival === null || isKeptBy(resultIn(rival, index), result)) ? result : null;
  });
  const refundsLanded = candidates.length === 1 && proven === writes[0];
  return { results, unanswered: refundsLanded ? { ...unanswered, lostRefunds: new Map() } : unanswered };
}

/**
 * Whether a caller may get the result even if the refused write is the one that landed. It must contain what the result
 * promises. A denial promises nothing, and a refund that it leaves out stays taken, which is the strict side.
 */
function isKeptBy(rival: EntryResult | null, result: EntryResult | null): boolean {
  if (result === null || result.kind === 'denied' || isSameAnswer(rival, result)) return true;
  return result.kind === 'done' && rival?.kind === 'refund-left-out';
}

/**
 * Whether two writes give a caller the same answer. What they answer to an extend or an operation of a portable lease must
 * be equal, because it can be planned again without counting twice. The balances of a grant may differ.
 */
function isSameAnswer(a: EntryResult | null, b: EntryResult | null): boolean {
  if (a?.kind !== b?.kind) return false;
  if (a?.kind === 'extended' && b?.kind === 'extended') return a.found === b.found;
  if (a?.kind === 'ended' && b?.kind === 'ended') return isSameAccount(a.part, b.part);
  if (a?.kind !== 'operated' || b?.kind !== 'operated') return true;
  return a.part === null || b.part === null ? a.part === b.part : isSameAccount(a.part, b.part);
}

/**
 * The results of the releases that an image shows to have landed; null for the other open entries. A missing holder
 * proves a release for its own lease only: another release of the same lease may have removed it.
 */
export function releasedResults(
  sents: readonly SentWrite[],
  image: ShardImage | null,
  entries: readonly Entry[],
  open: readonly number[],
): readonly (EntryResult | null)[] {
  return open.map((index) => {
    if (image === null) return null;
    const entry = entries[index] as Entry;
    const proof = sents.find((sent) => showsReleaseOf(image, entry, sent.write, sent.seen));
    return proof === undefined ? null : resultIn(proof, index);
  });
}
