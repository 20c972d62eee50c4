import {
  applyWrite,
  credit,
  effectiveTokens,
  gainsTokens,
  type LimitWrite,
  type Rate,
  waitForTokens,
} from '../../../core/bucket/bucket.js';
import { compareVersions, type ConfigVersion } from '../../../core/config/config.js';
import type { Holder, Verdict } from '../../../core/bucket/decide.js';
import { add, type Int, sub } from '../../../core/int.js';
import { refills } from '../../../core/limit-kind.js';
import type { EpochMs } from '../../../core/units.js';
import type { EntryResult } from './group/entries.js';
import {
  accountOf,
  ATTRIBUTE,
  decodeHolder,
  encodeHolder,
  printVersion,
  type ShardImage,
  type StoredHolder,
} from '../table/items.js';
import { raiseTtl, type RecordUpdate, startShardUpdate, type Update, type WriteIds } from './writes/record-write.js';
import type { LevelRef } from '../../../backend.js';

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

/** The image after the write, computed as the store computes it. */
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
    // Only a shadow of which nothing was taken has a wait in a grant, and keeps one: it may have been put aside.
    const rate = verdict.waitMs === 0 ? undefined : accountOf(seen, verdict.limit.name)?.rate;
    if (rate === undefined || !refills(rate.kind)) return corrected;
    const needMilli = verdict.requestedMilli + (verdict.reserveMilli ?? 0);
    const tokensMilli = sub(effectiveMilli, verdict.creditedMilli);
    const waitMs = waitForTokens(rate, tokensMilli, seen.baseMs, needMilli, nowMs);
    return { ...corrected, waitMs: waitMs === 0 ? 1 : waitMs };
  };
  return results.map((result) => {
    if (result?.kind !== 'granted') return result;
    return { ...result, answer: { ...result.answer, verdicts: result.answer.verdicts.map(correct) } };
  });
}

/**
 * Takes, debits, refunds, holds, extends, releases and reclaims, in any combination: one write for a whole group.
 * Writes: per limit ADD tk (room) or SET tk (full), ADD tc; ADD ac, un, wc; SET or REMOVE h; SET w; cv, ttl, the sweep
 * list as needed.
 * Condition: rf = :rf; pz does not exist or pz <= :now, if it takes; per limit the bounds of its form; per holder h =
 * :seen, or h does not exist; cv = :seen if adopted; ttl <= :ttl if it is set; w <> :id.
 * On success: the new record.   On failure: the record, null if there is none.   Cost: 1 write unit per started KB
 * either way.
 */
export function buildShardWrite(ns: string, image: ShardImage, write: ShardWrite, ids: WriteIds): Update {
  const update = startShardUpdate(image, ids)
    .add(ATTRIBUTE.acquires, write.acquires)
    .add(ATTRIBUTE.expired, write.expired);
  if (write.takesAtMs !== undefined) update.requireAbsentOrAtMost(ATTRIBUTE.pauseEnd, write.takesAtMs);
  for (const limit of write.limits) changeLimit(update, limit);
  for (const holder of write.holders) changeHolder(update, holder);
  if (!image.onSweepList && write.holders.some(({ kind }) => kind === 'add')) update.listForSweep();
  if (write.adopts !== null) {
    // If two writers adopt a version at once, the older version must not be written last.
    update
      .requireEqual(ATTRIBUTE.version, printVersion(image.version))
      .set(ATTRIBUTE.version, printVersion(write.adopts));
  }
  if (write.ttlSec === null) update.remove(ATTRIBUTE.ttl);
  else if (write.ttlSec !== undefined) raiseTtl(update, write.ttlSec);
  return update.of(ns, image.key);
}

function changeLimit(update: RecordUpdate, { name, write, consumedMilli }: LimitChange): void {
  const tokens = ATTRIBUTE.tokens(name);
  if (write.write === 'set') {
    update.requireWithin(tokens, write.atLeastMilli, null).set(tokens, write.tokensMilli);
  } else {
    update.requireWithin(tokens, write.atLeastMilli, write.atMostMilli).add(tokens, write.deltaMilli);
  }
  update.add(ATTRIBUTE.consumed(name), consumedMilli);
}

function changeHolder(update: RecordUpdate, change: HolderChange): void {
  const attribute = ATTRIBUTE.holder(change.leaseId);
  switch (change.kind) {
    case 'add':
      update.requireAbsent(attribute).set(attribute, change.text);
      break;
    case 'replace':
      update.requireEqual(attribute, change.seen).set(attribute, change.text);
      break;
    case 'remove':
      update.requireEqual(attribute, change.seen).remove(attribute);
      break;
    case 'absent':
      update.requireAbsent(attribute);
      break;
  }
}

const LEAST_LIFE_MS = 3_600_000;
/** A wait is at most this long, however large the debt: 285,000 years. */
const NEVER_SEC = Number.MAX_SAFE_INTEGER / 1_000;
/** For writes that belong to no call, and so have no limiter options. */
export const DEFAULT_LIFE_FACTOR = 7;

/** How long an empty limit takes to fill. */
function fillMs(rate: Rate): number {
  const { capacityMilli, refillMilli, refillPeriodMs } = rate;
  return gainsTokens(rate) ? Math.ceil((capacityMilli / refillMilli) * refillPeriodMs) : 0;
}

/** How long an idle bucket is kept at most. No balance depends on it, so floating-point numbers are exact enough. */
function wholeLifeMs(image: ShardImage, factor: number): number {
  return Math.max(LEAST_LIFE_MS, factor * longestFillMs(image));
}

function longestFillMs({ limits }: ShardImage): number {
  let longestMs = 0;
  for (const { rate } of limits) longestMs = Math.max(longestMs, fillMs(rate));
  return longestMs;
}

/** When every limit will be full and every holder expired, if no write comes first. */
function quietAtMs(image: ShardImage, nowMs: EpochMs): EpochMs {
  let quietMs = nowMs;
  for (const { rate, tokensMilli } of image.limits) {
    if (!gainsTokens(rate)) continue;
    const waitMs = waitForTokens(rate, tokensMilli, image.baseMs, rate.capacityMilli, nowMs) ?? 0;
    quietMs = Math.max(quietMs, nowMs + waitMs);
  }
  for (const { expiresAtMs } of image.holders.values()) quietMs = Math.max(quietMs, expiresAtMs);
  return quietMs;
}

/**
 * The `ttl` of a bucket: the instant from which it is full and without holders, plus the rest of its life. Deleting it
 * then changes no answer.
 */
export function expirySec(image: ShardImage, nowMs: EpochMs, factor: number): number {
  const untilMs = Math.max(nowMs + LEAST_LIFE_MS, quietAtMs(image, nowMs) + (factor - 1) * longestFillMs(image));
  return Math.ceil(untilMs / 1000);
}

/** Whether less than half of the life is left, so that the next take should renew the ttl. */
export function needsTtlRefresh(image: ShardImage, nowMs: EpochMs, factor: number): boolean {
  if (image.ttlSec === null) return false;
  return image.ttlSec * 1000 - nowMs < wholeLifeMs(image, factor) / 2;
}

/** Whether the store could delete the bucket while a limit is below full or a holder has not expired. */
export function expiresTooEarly({ ttlSec, limits, baseMs, holders }: ShardImage): boolean {
  if (ttlSec === null) return false;
  for (const { rate, tokensMilli } of limits) {
    if (gainsTokens(rate) && tokensMilli < leastTokens(rate, baseMs, ttlSec)) return true;
  }
  for (const { expiresAtMs } of holders.values()) if (expiresAtMs > ttlSec * 1000) return true;
  return false;
}

/** The least balance at `baseMs` that is full again at the ttl. */
function leastTokens(rate: Rate, baseMs: EpochMs, ttlSec: number): Int {
  return sub(rate.capacityMilli, credit(rate, baseMs, ttlSec * 1000));
}

/**
 * Adds a condition that refuses the write if the bucket would not be full again at its ttl: the `ttl` was chosen from
 * the image, and other writers may have taken more since.
 */
export function withinTtl(write: LimitWrite, rate: Rate, baseMs: EpochMs, ttlSec: number | null): LimitWrite {
  if (ttlSec === null || !gainsTokens(rate) || write.write === 'set') return write;
  const leastMilli = sub(leastTokens(rate, baseMs, ttlSec), write.deltaMilli);
  const { atLeastMilli } = write;
  return atLeastMilli !== null && atLeastMilli >= leastMilli ? write : { ...write, atLeastMilli: leastMilli };
}

/** A bucket that was not written for this long is written so seldom that a write under `w = :seen` will land. */
const IDLE_MS = 60_000;

/**
 * Whether a bucket without a ttl should get one: its limits are inherited, it has one shard, and it is seldom written.
 */
export function needsTtl({ ttlSec, shardCount }: ShardImage, lasting: boolean | undefined, idleMs: number): boolean {
  return ttlSec === null && shardCount === 1 && lasting === false && idleMs >= IDLE_MS;
}

interface TtlContext {
  readonly nowMs: EpochMs;
  readonly lifeFactor: number;
}

/**
 * Renews the `ttl` if needed. Adds conditions that refuse the write if other writers have taken so much since the image
 * was read that a limit would not be full again at the `ttl`.
 */
export function withTtl(image: ShardImage, write: ShardWrite, newest: LevelRef | null, at: TtlContext): ShardWrite {
  const { baseMs, ttlSec, version } = image;
  // Needs no condition: the write that adds a ttl also moves the base, and this write requires the base of the image.
  // So this write cannot land on a bucket that got a ttl since.
  if (ttlSec === null) return write;
  if (newest?.lasting === true && compareVersions(newest.version, version) >= 0) return { ...write, ttlSec: null };
  const renewedSec = renewedTtl(image, write, ttlSec, at);
  // No later write could meet the condition of a ttl that was cut off here, so the bucket has none until it is paid.
  if (renewedSec !== undefined && renewedSec >= NEVER_SEC) return { ...write, ttlSec: null };
  const limits = write.limits.map((limit) => {
    const rate = accountOf(image, limit.name)?.rate;
    const isSpent = limit.write.write === 'add' && limit.write.deltaMilli < 0;
    if (rate === undefined || !isSpent) return limit;
    return { ...limit, write: withinTtl(limit.write, rate, baseMs, renewedSec ?? ttlSec) };
  });
  return { ...write, limits, ttlSec: renewedSec };
}

/** undefined: the stored ttl is long enough. */
function renewedTtl(
  image: ShardImage,
  write: ShardWrite,
  ttlSec: number,
  { nowMs, lifeFactor }: TtlContext,
): number | undefined {
  const after = applyShardWrite(image, write, '');
  if (!needsTtlRefresh(image, nowMs, lifeFactor) && !expiresTooEarly(after)) return undefined;
  return Math.max(ttlSec, expirySec(after, nowMs, lifeFactor));
}
