import type { Context } from '../context.js';
import { emit } from '../events/emit.js';
import type { LeaseEnded } from '../events/limiter-event.js';
import type { LeaseAccount } from './lease-account.js';

/** Tells `onEvent` how a lease ended. `amounts`: what a rollback gave back. Default: what the lease has taken. */
export function tellLeaseEnd(
  { options, namespace }: Context,
  account: LeaseAccount,
  how: LeaseEnded['how'],
  amounts?: Readonly<Record<string, number>>,
): void {
  if (options.onEvent === null) return;
  const { entityId, resource, leaseId } = account;
  const told = amounts ?? account.consumed();
  emit(options, { type: 'lease-end', namespace, entityId, resource, leaseId, how, amounts: told });
}
