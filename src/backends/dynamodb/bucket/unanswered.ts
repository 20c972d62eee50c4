import type { ShardImage } from '../table/items.js';
import type { Doubt, Entry, EntryResult } from './entries.js';
import { refunds, refundsWithoutHolder, showsAdditionOf, showsReleaseOf } from './landed-writes.js';
import { doubtOf } from './revocation.js';
import type { ShardWrite } from './shard-write.js';

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
  /** The entries whose refund was in the first of these writes, with its error. Their refund is not sent again. */
  readonly lostRefunds: ReadonlyMap<number, unknown>;
  /** What is in doubt for the asks that one of these writes would have granted. */
  readonly doubts: ReadonlyMap<number, Doubt>;
}

export const ALL_ANSWERED: Unanswered = { writes: [], lostRefunds: new Map(), doubts: new Map() };

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
    const doubt = doubtOf(entry, result, sent.seen);
    if (doubt !== null) doubtful.set(index, doubt);
  }
  return { writes: [...writes, sent], lostRefunds: lost, doubts: doubtful };
}

/** The result of an entry if the write landed. null: the write did not contain the entry. */
export function resultIn({ open, results }: SentWrite, index: number): EntryResult | null {
  return results[open.indexOf(index)] ?? null;
}

/** Whether the refund of an entry may have landed. */
export function mayHaveRefunded({ writes }: Unanswered, entry: Entry, index: number): boolean {
  return refunds(entry) && writes.some((sent) => resultIn(sent, index) !== null);
}

/**
 * The results of an unanswered write for the open entries, if this image proves that the write landed, and what remains
 * in doubt then. null: no proof.
 */
export function landedResults(
  unanswered: Unanswered,
  image: ShardImage | null,
  open: readonly number[],
): { readonly results: readonly (EntryResult | null)[]; readonly unanswered: Unanswered } | null {
  const { writes } = unanswered;
  if (image === null) return null;
  const proven = writes.find(({ id, write }) => id === image.writeId || showsAdditionOf(image, write));
  if (proven === undefined) return null;
  const isCertain = proven.id === image.writeId || writes.length === 1;
  const refundsLanded = isCertain && proven === writes[0];
  // Several of the writes may have added the same holder. Then only results that all of them agree on are certain, and
  // the other entries are planned again.
  const results = open.map((index) => {
    const result = resultIn(proven, index);
    const agrees = isCertain || writes.every((sent) => resultIn(sent, index)?.kind === result?.kind);
    return agrees ? result : null;
  });
  return { results, unanswered: refundsLanded ? { ...unanswered, lostRefunds: new Map() } : unanswered };
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
