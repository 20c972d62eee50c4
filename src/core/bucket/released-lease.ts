import { parsePlainResource } from '../identifiers.js';
import type { Holder } from './decide.js';

/** The action, subject, `before` and `after` of the audit record of a lease that was released by its id. */
export function describeRelease({
  id,
  entityId,
  resource,
  slots,
  rates,
  portable,
  caller,
  expiresAtMs,
}: Holder & { readonly id: string; readonly entityId: string; readonly resource: string }) {
  const held = [...slots, ...(portable?.taken ?? rates ?? [])];
  const before = {
    resource: parsePlainResource(resource),
    lease: id,
    amountsMilli: Object.fromEntries(held.map(({ name, milli }) => [name, String(milli)])),
    ...(caller === null ? {} : { caller }),
    expiresAt: new Date(expiresAtMs).toISOString(),
  };
  return { action: 'lease.release', subject: entityId, before, after: null } as const;
}
