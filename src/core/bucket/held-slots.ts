import type { Rate } from './bucket.js';
import { amountOf, type Holder } from './decide.js';
import { add, type Int, sub } from '../int.js';
import { holdsSlots } from '../limit-kind.js';
import { fullTokens } from '../limit.js';
import type { Millitokens } from '../units.js';

/** The slots of one limit that these holders hold together. */
export function heldSlots(holders: ReadonlyMap<string, Holder>, name: string): Int {
  let sum: Int = 0;
  for (const { slots } of holders.values()) sum = add(sum, amountOf(slots, name) ?? 0);
  return sum;
}

/**
 * The balance of a limit that is new to a bucket: full, less the slots that leases hold already. Below 0 if they hold
 * more than there are.
 */
export function startingTokens(rate: Rate, heldMilli: Int): Millitokens {
  return holdsSlots(rate.kind) ? sub(fullTokens(rate), heldMilli) : fullTokens(rate);
}
