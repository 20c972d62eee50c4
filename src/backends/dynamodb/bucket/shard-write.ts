import {
  applyWrite,
  credit,
  effectiveTokens,
  type LimitWrite,
  planMove,
  type Rate,
  waitForTokens,
} from '../../../core/bucket/bucket.js';
import type { ConfigVersion } from '../../../core/config/config.js';
import type { Amount, Holder, Verdict } from '../../../core/bucket/decide.js';
import { add, type Int, min, sub } from '../../../core/int.js';
import { hasBalance, isConsumed, refills, sharesAccount } from '../../../core/limit-kind.js';
import type { EpochMs } from '../../../core/units.js';
import type { EntryResult } from './group/entries.js';
import { accountOf, decodeHolder, encodeHolder, type ShardImage, type StoredHolder } from '../table/items.js';

/**
 * What one write does to one shard. It is planned on an image, which may be stale. Its conditions refuse it on every
 * stored item on which it would not have the planned effect.
 */
export interface ShardWrite {
  readonly limits: readonly LimitChange[];
  readonly acquires: number;
  readonly expired: number;
  readonly holders: readonly HolderChange[];
  /** The new version of a config whose rules the bucket already has. */
  readonly adopts: ConfigVersion | null;
  /** When the write takes, if it contains a take: a pause must not run then. undefined for a write that takes nothing. */
  readonly takesAtMs?: EpochMs | undefined;
  /** undefined: unchanged. null: removed, so that the bucket never expires. */
  readonly ttlSec: number | null | undefined;
}

export interface LimitChange {
  readonly name: string;
  readonly write: LimitWrite;
  /** The change of net consumption. 0 for slots. */
  readonly consumedMilli: Int;
}

export type HolderChange =
  | { readonly kind: 'add'; readonly leaseId: string; readonly text: string }
  | { readonly kind: 'replace'; readonly leaseId: string; readonly seen: string; readonly text: string }
  | { readonly kind: 'remove'; readonly leaseId: string; readonly seen: string }
  /** Writes nothing, but requires that the holder does not exist, because the answer to the caller says so. */
  | { readonly kind: 'absent'; readonly leaseId: string };

/** Leaves a balance as it is. */
export const STAYS: LimitWrite = { write: 'add', deltaMilli: 0, atLeastMilli: null, atMostMilli: null };

interface Sum {
  takeMilli: Int | null;
  /** The largest reserve among the takes. */
  reserveMilli: number;
  debitMilli: Int;
  refundMilli: Int;
  /** Asks that are counted and not taken: shadows that are short. */
  countMilli: Int;
  /** The stored tokens are at most this, so that the shadows are short; null: they are short anyway. */
  atMostMilli: Int | null;
  /** Consumption that is taken back and changes no balance. */
  uncountMilli: Int;
}

/** The sums that a write changes each limit by. */
export class LimitSums {
  readonly #byName = new Map<string, Sum>();

  take(name: string, milli: Int, reserveMilli = 0): void {
    const sum = this.#of(name);
    sum.takeMilli = add(sum.takeMilli ?? 0, milli);
    sum.reserveMilli = Math.max(sum.reserveMilli, reserveMilli);
  }

  /** Counts an ask of a shadow that is short, also after the takes so far. `needMilli`: the ask and its reserve. */
  count(name: string, milli: number, needMilli: number, rate: Rate, creditedMilli: Int): void {
    const sum = this.#of(name);
    sum.countMilli = add(sum.countMilli, milli);
    const missing = add(needMilli, sum.takeMilli ?? 0);
    // More than the capacity is short whatever the balance is.
    if (refills(rate.kind) && missing > rate.capacityMilli) return;
    const atMost = sub(sub(missing, creditedMilli), 1);
    sum.atMostMilli = sum.atMostMilli === null ? atMost : min(sum.atMostMilli, atMost);
  }

  /** What the takes so far must leave. */
  reserveOf(name: string): number {
    return this.#byName.get(name)?.reserveMilli ?? 0;
  }

  debit(name: string, milli: Int): void {
    const sum = this.#of(name);
    sum.debitMilli = add(sum.debitMilli, milli);
  }

  /** Skips a limit that was removed, and one that has changed its kind: tokens are not slots. */
  refund(image: ShardImage, kind: 'rate' | 'concurrent', amounts: readonly Amount[]): void {
    for (const { name, milli } of amounts) {
      const found = accountOf(image, name)?.limit.kind;
      if (found === undefined || !sharesAccount(found, kind)) continue;
      const sum = this.#of(name);
      sum.refundMilli = add(sum.refundMilli, milli);
    }
  }

  uncount(name: string, milli: Int): void {
    const sum = this.#of(name);
    sum.uncountMilli = add(sum.uncountMilli, milli);
  }

  changes(image: ShardImage, nowMs: EpochMs): readonly LimitChange[] {
    const changes: LimitChange[] = [];
    for (const { limit, rate, tokensMilli } of image.limits) {
      const sum = this.#byName.get(limit.name);
      if (sum === undefined) continue;
      const credited = credit(rate, image.baseMs, nowMs);
      const write = hasBalance(limit.kind) ? bounded(planMove(rate, tokensMilli, credited, sum), sum) : STAYS;
      changes.push({ name: limit.name, write, consumedMilli: isConsumed(limit.kind) ? consumedIn(sum) : 0 });
    }
    return changes;
  }

  #of(name: string): Sum {
    let sum = this.#byName.get(name);
    if (sum === undefined) this.#byName.set(name, (sum = { ...NOTHING }));
    return sum;
  }
}

const NOTHING: Sum = {
  takeMilli: null,
  reserveMilli: 0,
  debitMilli: 0,
  refundMilli: 0,
  countMilli: 0,
  atMostMilli: null,
  uncountMilli: 0,
};

/** Adds the bound under which the shadows of the group are short. A full bucket is known exactly and needs none. */
function bounded(write: LimitWrite, { atMostMilli }: Sum): LimitWrite {
  if (atMostMilli === null || write.write === 'set') return write;
  return { ...write, atMostMilli: write.atMostMilli === null ? atMostMilli : min(write.atMostMilli, atMostMilli) };
}

function consumedIn({ takeMilli, debitMilli, refundMilli, countMilli, uncountMilli }: Sum): Int {
  return sub(add(add(takeMilli ?? 0, countMilli), debitMilli), add(refundMilli, uncountMilli));
}

/** Whether the write would change nothing. It may still require that holders are absent. */
export function changesNothing({ limits, acquires, expired, holders, adopts, ttlSec }: ShardWrite): boolean {
  return (
    acquires === 0 &&
    expired === 0 &&
    adopts === null &&
    ttlSec === undefined &&
    limits.every(
      ({ write, consumedMilli }) => write.write === 'add' && write.deltaMilli === 0 && consumedMilli === 0,
    ) &&
    holders.every(({ kind }) => kind === 'absent')
  );
}

export function addHolder(leaseId: string, holder: Holder): HolderChange {
  return { kind: 'add', leaseId, text: encodeHolder(holder) };
}

export function replaceHolder(leaseId: string, seen: StoredHolder, holder: Holder): HolderChange {
  return { kind: 'replace', leaseId, seen: seen.text, text: encodeHolder(holder) };
}

export function removeHolder(leaseId: string, seen: StoredHolder): HolderChange {
  return { kind: 'remove', leaseId, seen: seen.text };
}

/**
 * Whether this change of a holder makes a refund in the same write count once, however often the write is sent: the
 * write requires the holder as seen, and the first write that lands changes it.
 */
export function countsOnce(change: HolderChange | undefined): boolean {
  return change?.kind === 'remove' || (change?.kind === 'replace' && change.text !== change.seen);
}

/** The image after the write, computed as DynamoDB computes it. */
export function applyShardWrite(image: ShardImage, write: ShardWrite, writeId: string): ShardImage {
  const holders = holdersAfter(image, write);
  return {
    ...image,
    writeId,
    version: write.adopts ?? image.version,
    ttlSec: write.ttlSec === undefined ? image.ttlSec : write.ttlSec,
    acquires: image.acquires + write.acquires,
    expired: image.expired + write.expired,
    holders,
    onSweepList: image.onSweepList || holders.size > 0,
    limits: image.limits.map((account) => {
      const change = write.limits.find(({ name }) => name === account.limit.name);
      if (change === undefined) return account;
      return {
        ...account,
        tokensMilli: applyWrite(change.write, account.tokensMilli),
        consumedMilli: add(account.consumedMilli, change.consumedMilli),
      };
    }),
  };
}

function holdersAfter({ holders: before }: ShardImage, { holders: changes }: ShardWrite): ShardImage['holders'] {
  if (changes.length === 0) return before;
  const holders = new Map(before);
  for (const change of changes) {
    if (change.kind === 'remove') holders.delete(change.leaseId);
    else if (change.kind !== 'absent') holders.set(change.leaseId, decodeHolder(change.leaseId, change.text));
  }
  return holders;
}

/**
 * The results of a write that landed, with corrected balances. The write was planned on the image `seen`, which may
 * have been stale: its grants are right, because the conditions held, but the balances in its verdicts are those of the
 * image. The store returned the image `shown`. Its difference from the predicted balance is added to the verdicts of
 * every grant.
 */
export function correctVerdicts(
  results: readonly (EntryResult | null)[],
  { limits }: ShardWrite,
  seen: ShardImage,
  shown: ShardImage,
  nowMs: EpochMs,
): readonly (EntryResult | null)[] {
  let differences: Map<string, Int> | null = null;
  for (const { name, write } of limits) {
    const before = accountOf(seen, name);
    const after = accountOf(shown, name);
    if (before === undefined || after === undefined) continue;
    const difference = sub(after.tokensMilli, applyWrite(write, before.tokensMilli));
    if (difference === 0) continue;
    const { rate, tokensMilli } = before;
    const worth = (milli: Int): Int => effectiveTokens(rate, milli, credit(rate, seen.baseMs, nowMs));
    differences ??= new Map();
    differences.set(name, sub(worth(add(tokensMilli, difference)), worth(tokensMilli)));
  }
  if (differences === null) return results;
  const found = differences;
  const correct = (verdict: Verdict): Verdict => {
    const effectiveMilli = add(verdict.effectiveMilli, found.get(verdict.limit.name) ?? 0);
    const corrected = { ...verdict, effectiveMilli };
    // Only a shadow that is short has a wait in a grant.
    const rate = verdict.waitMs === 0 ? undefined : accountOf(seen, verdict.limit.name)?.rate;
    if (rate === undefined || !refills(rate.kind)) return corrected;
    const needMilli = verdict.requestedMilli + (verdict.reserveMilli ?? 0);
    const tokensMilli = sub(effectiveMilli, verdict.creditedMilli);
    return { ...corrected, waitMs: waitForTokens(rate, tokensMilli, seen.baseMs, needMilli, nowMs) };
  };
  return results.map((result) => {
    if (result?.kind !== 'granted') return result;
    return { ...result, answer: { ...result.answer, verdicts: result.answer.verdicts.map(correct) } };
  });
}
