import type { Amount, Holder } from './decide.js';
import { isClosed } from './portable.js';
import { isUnlimitedIn, type Limit } from '../limit.js';
import type { EpochMs } from '../units.js';

/** Whether a holder has expired, so that a reclaim gives something back. */
export function hasExpired({ holders }: { readonly holders: ReadonlyMap<string, Holder> }, nowMs: EpochMs): boolean {
  for (const { expiresAtMs } of holders.values()) if (expiresAtMs <= nowMs) return true;
  return false;
}

/** What the expiry of a lease gives back. */
interface Expiry {
  readonly slots: readonly Amount[];
  /** Empty unless the holder carries its rates. */
  readonly rates: readonly Amount[];
  /** False: the lease has ended before. Its holder holds nothing, and stayed to answer repeats. */
  readonly counts: boolean;
}

export function expiryOf(holder: Holder): Expiry {
  return { slots: holder.slots, rates: holder.rates ?? [], counts: !isClosed(holder) };
}

/**
 * Whether a refund only lowers the counter. `rules`: the limits that the lease took by. What it took of an unlimited limit
 * came from no balance, so a limit that has replaced it since must not get it back.
 */
export function refundsCounterOnly(rules: readonly Limit[], name: string): boolean {
  return isUnlimitedIn(rules, name);
}
