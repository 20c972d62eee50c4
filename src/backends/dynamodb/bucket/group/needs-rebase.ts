import { credit, effectiveTokens } from '../../../../core/bucket/bucket.js';
import { refills } from '../../../../core/limit-kind.js';
import type { EpochMs, Millitokens } from '../../../../core/units.js';
import type { Account } from '../../table/items.js';

/** Beyond this, balances approach the bigint path, which is slow. A new base makes them small again. */
const LARGE_MILLI = 2 ** 50;

/**
 * Only if it helps: a debt may be that large by itself. Not at the instant of the base: the base moves strictly
 * forward, and would credit a millisecond that has not passed.
 */
export function needsRebase({ rate, tokensMilli }: Account, baseMs: EpochMs, nowMs: EpochMs): boolean {
  if (isSmall(tokensMilli) || nowMs <= baseMs) return false;
  return refills(rate.kind) && isSmall(effectiveTokens(rate, tokensMilli, credit(rate, baseMs, nowMs)));
}

function isSmall(milli: Millitokens): boolean {
  return milli <= LARGE_MILLI && milli >= -LARGE_MILLI;
}
