import { holdsSlots, isConsumed, type LimitKind } from '../../core/limit-kind.js';
import type { Context } from '../context.js';
import { emit } from '../events/emit.js';
import type { LeaseEnded } from '../events/limiter-event.js';
import type { LeaseAccount } from './lease-account.js';

type Amounts = Readonly<Record<string, number>>;

/** The amounts of the limits whose kind fits. Default: what the lease has taken. */
export function amountsOfKind(
  account: LeaseAccount,
  isWanted: (kind: LimitKind) => boolean,
  amounts: Amounts = account.consumed(),
): Amounts {
  const isOfKind = (name: string): boolean => {
    const kind = account.kindOf(name);
    return kind !== undefined && isWanted(kind);
  };
  // Most leases have only tokens: nothing is copied for them.
  if (Object.keys(amounts).every(isOfKind)) return amounts;
  return Object.fromEntries(Object.entries(amounts).filter(([name]) => isOfKind(name)));
}

/** Tells `onEvent` how a lease ended. `amounts`: what a rollback gave back. Default: what the lease has taken. */
export function tellLeaseEnd(
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

/** Whether the lease holds slots that `onEvent` is told of. */
export function hasSlotsToTell({ options }: Context, account: LeaseAccount): boolean {
  if (options.onEvent === null || !account.holds) return false;
  return Object.keys(amountsOfKind(account, holdsSlots)).length > 0;
}

/** Tells `onEvent` which slots the lease holds, and for how long. */
export function tellSlots(context: Context, account: LeaseAccount): void {
  if (!hasSlotsToTell(context, account)) return;
  const { expiresAtMs } = account;
  const expiresAt = expiresAtMs === null ? null : new Date(expiresAtMs);
  emitSlots(context, account, amountsOfKind(account, holdsSlots), expiresAt);
}

/** Tells `onEvent` that the lease holds no slots any more. */
export function tellSlotsEnded(context: Context, account: LeaseAccount): void {
  emitSlots(context, account, {}, null);
}

function emitSlots(
  { options, namespace }: Context,
  account: LeaseAccount,
  slots: Amounts,
  expiresAt: Date | null,
): void {
  const { entityId, resource, leaseId } = account;
  emit(options, { type: 'slots', namespace, entityId, resource, leaseId, slots, expiresAt });
}
