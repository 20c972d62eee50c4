import type { LevelRef } from '../../../../backend.js';
import type { Amount } from '../../../../core/bucket/decide.js';
import { refundsCounterOnly } from '../../../../core/bucket/give-back.js';
import { amountsDue, keptHolder } from '../../../../core/bucket/holder-rules.js';
import { isClosed, operate, partOf } from '../../../../core/bucket/portable.js';
import { tracesToDrop } from '../../../../core/bucket/traces.js';
import { sub } from '../../../../core/int.js';
import { isConsumed } from '../../../../core/limit-kind.js';
import { accountOf, type StoredHolder } from '../../table/items.js';
import { countsOnce, type HolderChange, removeHolder, replaceHolder } from '../shard-write.js';
import type { ChangeEntry, EntryResult, ExtendEntry, OperationEntry } from './entries.js';
import type { GroupDraft } from './group-draft.js';

/** Settles, releases or undoes what a lease took. */
export function planChange(
  draft: GroupDraft,
  { level, leaseId, uncounts, untaken = [], onlyIfHeld, holderText }: ChangeEntry,
): EntryResult | null {
  const stored = level.holder === 'none' ? undefined : draft.image.holders.get(leaseId);
  const holderLost = level.holder !== 'none' && stored === undefined;
  // It holds nothing any more, and stays to answer repeats.
  if (onlyIfHeld === true && stored !== undefined && isClosed(stored)) return { kind: 'done', holderLost: true };
  if (stored !== undefined && holderText !== undefined && stored.text !== holderText) {
    if (!draft.mayChangeHolder(leaseId)) return null;
    requireSame(draft, leaseId, stored);
    return { kind: 'done', holderLost: true };
  }
  if (level.holder !== 'none') {
    if (!draft.mayChangeHolder(leaseId)) return null;
    const change = holderChange(draft, level, leaseId);
    if (change !== null) draft.changeHolder(change);
  }
  if (onlyIfHeld === true && holderLost) return { kind: 'done', holderLost };
  const amounts = amountsDue(level, stored);
  // If its holder changes in the same write, a refund counts once. Without that, a second write could count it twice.
  const mayRefund = !draft.at.withoutRefunds || countsOnce(draft.holderChangeOf(leaseId));
  const isLeftOut = move(draft, level, amounts, mayRefund);
  if (level.holder === 'release' && stored !== undefined) {
    draft.sums.refund(draft.image, 'concurrent', stored.slots);
  }
  if (uncounts && mayRefund) {
    draft.acquires -= 1;
    for (const { name, milli } of untaken) {
      if (accountOf(draft.image, name) !== undefined) draft.sums.uncount(name, milli);
    }
  }
  return isLeftOut ? { kind: 'refund-left-out' } : { kind: 'done', holderLost };
}

/** True: a refund was left out. */
function move(
  draft: GroupDraft,
  { limits }: Pick<LevelRef, 'limits'>,
  amounts: readonly Amount[],
  mayRefund: boolean,
): boolean {
  let isLeftOut = false;
  for (const { name, milli } of amounts) {
    const kind = accountOf(draft.image, name)?.limit.kind;
    if (kind === undefined || !isConsumed(kind) || milli === 0) continue;
    if (milli > 0) draft.sums.debit(name, milli);
    else if (!mayRefund) isLeftOut = true;
    else if (refundsCounterOnly(limits, name)) draft.sums.uncount(name, sub(0, milli));
    else draft.sums.refund(draft.image, 'rate', [{ name, milli: sub(0, milli) }]);
  }
  return isLeftOut;
}

/** What it gives back counts once, because the same write changes the holder. */
export function planOperation(draft: GroupDraft, { level, leaseId }: OperationEntry): EntryResult | null {
  if (!draft.mayChangeHolder(leaseId)) return null;
  const stored = draft.image.holders.get(leaseId);
  const effect = operate(stored, level, draft.image.limits, draft.at.nowMs);
  if (stored === undefined || effect.kind === 'lost') {
    requireAbsent(draft, leaseId);
    if (effect.kind === 'lost') move(draft, level, effect.due, false);
    return { kind: 'operated', part: null };
  }
  if (effect.kind === 'closed') return ended(draft, leaseId, stored, effect);
  if (effect.holder === stored) requireSame(draft, leaseId, stored);
  else draft.changeHolder(replaceHolder(leaseId, stored, effect.holder));
  if (isClosed(effect.holder) && !isClosed(stored)) draft.endedLeases.set(leaseId, effect.holder);
  move(draft, level, effect.due, true);
  draft.sums.refund(draft.image, 'concurrent', effect.slotsBack);
  return { kind: 'operated', part: partOf(effect.holder) };
}

/** Called after all operations: a write that adds traces drops the oldest ones, so that the item stays small. */
export function dropTraces(draft: GroupDraft): void {
  const { holders } = draft.image;
  for (const leaseId of tracesToDrop(new Map([...holders, ...draft.endedLeases]))) {
    const stored = holders.get(leaseId);
    if (stored !== undefined && draft.mayChangeHolder(leaseId)) draft.changeHolder(removeHolder(leaseId, stored));
  }
}

function ended(
  draft: GroupDraft,
  leaseId: string,
  stored: StoredHolder,
  { state, part }: Pick<Extract<EntryResult, { readonly kind: 'ended' }>, 'state' | 'part'>,
): EntryResult {
  requireSame(draft, leaseId, stored);
  return { kind: 'ended', state, part };
}

/** The answer depends on the holder, of which nothing changes. */
function requireSame(draft: GroupDraft, leaseId: string, stored: StoredHolder): void {
  if (!draft.isExact) draft.changeHolder(replaceHolder(leaseId, stored, stored));
}

function requireAbsent(draft: GroupDraft, leaseId: string): void {
  draft.unsure = true;
  if (!draft.isExact) draft.changeHolder({ kind: 'absent', leaseId });
}

function holderChange(draft: GroupDraft, level: ChangeEntry['level'], leaseId: string): HolderChange | null {
  const stored = draft.image.holders.get(leaseId);
  if (stored === undefined) {
    draft.unsure = true;
    return draft.isExact ? null : { kind: 'absent', leaseId };
  }
  if (level.holder === 'release') return removeHolder(leaseId, stored);
  // The answer says whether the holder exists, so the condition must check it even if nothing of it changes.
  return replaceHolder(leaseId, stored, keptHolder(stored, level, draft.image.limits));
}

export function planExtend(draft: GroupDraft, { leaseId, expiresAtMs }: ExtendEntry): EntryResult | null {
  if (!draft.mayChangeHolder(leaseId)) return null;
  const stored = draft.image.holders.get(leaseId);
  const part = stored?.portable;
  if (stored !== undefined && part !== undefined && part.state !== 'open') {
    return ended(draft, leaseId, stored, { state: part.state, part });
  }
  if (stored !== undefined) {
    draft.changeHolder(replaceHolder(leaseId, stored, { ...stored, expiresAtMs }));
    return { kind: 'extended', found: true };
  }
  requireAbsent(draft, leaseId);
  return { kind: 'extended', found: false };
}
