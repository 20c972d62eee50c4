import { holdsSlots, isConsumed, type LimitKind } from '../../core/limit-kind.js';
import type { Context } from '../context.js';
import { emit } from '../events/emit.js';
import type { LeaseEnded } from '../events/limiter-event.js';
import type { LeaseAccount } from './lease-account.js';

type Amounts = Readonly<Record<string, number>>;

/** The amounts of the limits whose kind fits. Default: what the lease has taken. */
export function amountsOfKind(
  account: LeaseAccount,
  isIncluded: (kind: LimitKind) => boolean,
  amounts: Amounts = account.consumed(),
): Amounts {
  const isOfKind = (name: string): boolean => {
    const kind = account.kindOf(name);
    return kind !== undefined && isIncluded(kind);
  };
  // Most leases have only tokens: nothing is copied for them.
  if (Object.keys(amounts).every(isOfKind)) return amounts;
  return Object.fromEntries(Object.entries(amounts).filter(([name]) => isOfKind(name)));
}

/** Emits the end of a lease. `amounts`: what a rollback gave back. Default: what the lease has taken. */
export function emitLeaseEnd(
  { options, namespace }: Context,
  account: LeaseAccount,
  how: LeaseEnded['how'],
  amounts: Amounts = account.consumed(),
): void {
  if (options.onEvent === null) return;
  const { entityId, resource, leaseId } = account;
  const tokens = amountsOfKind(account, isConsumed, amounts);
  emit(options, { type: 'lease-end', namespace, entityId, resource, leaseId, how, amounts, tokens });
}

/** Whether `onEvent` gets events about the slots of the lease. */
export function hasSlotsToEmit({ options }: Context, account: LeaseAccount): boolean {
  if (options.onEvent === null || !account.holds) return false;
  return Object.keys(amountsOfKind(account, holdsSlots)).length > 0;
}

/** Emits which slots the lease holds, and for how long. */
export function emitSlots(context: Context, account: LeaseAccount): void {
  if (!hasSlotsToEmit(context, account)) return;
  const { expiresAtMs } = account;
  const expiresAt = expiresAtMs === null ? null : new Date(expiresAtMs);
  emitSlotsEvent(context, account, amountsOfKind(account, holdsSlots), expiresAt);
}

/** Emits that the lease holds no slots any more. */
export function emitSlotsEnded(context: Context, account: LeaseAccount): void {
  emitSlotsEvent(context, account, {}, null);
}

function emitSlotsEvent(
  { options, namespace }: Context,
  account: LeaseAccount,
  slots: Amounts,
  expiresAt: Date | null,
): void {
  const { entityId, resource, leaseId } = account;
  emit(options, { type: 'slots', namespace, entityId, resource, leaseId, slots, expiresAt });
}
