import type { LeaseRecord } from '../../backend.js';
import { type Amount, wholeTokens } from '../../core/bucket/decide.js';
import { parsePlainResource } from '../../core/identifiers.js';
import { type Context, endOfCall } from '../context.js';
import { emit } from '../events/emit.js';

/** Emits that a lease of another process has lost its slots in one bucket. */
export function emitSlotsReleased(
  { options, namespace }: Context,
  { id: leaseId, entityId, resource, slots }: LeaseRecord,
): void {
  if (options.onEvent === null || slots.length === 0) return;
  const at = { namespace, entityId, resource: parsePlainResource(resource), leaseId };
  emit(options, { type: 'slots', ...at, slots: {}, expiresAt: null });
}

/**
 * Emits that a lease has ended by its id, once for all its levels. `records`: its holders as they were. The process
 * that holds the lease notices the loss at its next write.
 */
export async function emitLeaseReleased(context: Context, records: readonly LeaseRecord[]): Promise<void> {
  const { options, namespace } = context;
  if (options.onEvent === null || records.length === 0) return;
  const own = await firstLevelOf(context, records);
  if (own === undefined) return;
  const { id: leaseId, entityId, resource, slots, rates, portable } = own;
  const tokens = wholeAmounts(portable?.taken ?? rates ?? []);
  const at = { namespace, entityId, resource: parsePlainResource(resource), leaseId };
  emit(options, { type: 'lease-end', ...at, how: 'expired', amounts: { ...wholeAmounts(slots), ...tokens }, tokens });
}

/** The level of the entity that acquired: the others are its parents. The holders do not say it. */
async function firstLevelOf(context: Context, records: readonly LeaseRecord[]): Promise<LeaseRecord | undefined> {
  const [first, ...others] = records;
  if (others.length === 0) return first;
  const nowMs = context.clock.now();
  for (const record of records) {
    try {
      const resource = parsePlainResource(record.resource);
      const chain = await context.resolver.chain(record.entityId, resource, nowMs, endOfCall(context, nowMs));
      const isAbove = ({ entityId }: LeaseRecord): boolean => chain.some((level) => level.entityId === entityId);
      if (records.every(isAbove)) return record;
    } catch {
      // The lease is released. Which level was the first is only for the listener.
      return first;
    }
  }
  return first;
}

function wholeAmounts(amounts: readonly Amount[]): Readonly<Record<string, number>> {
  return Object.fromEntries(amounts.map(({ name, milli }) => [name, wholeTokens(milli)]));
}
