import { FRAME_TOKENS } from '../request/input-bound.js';
import type { SeenOutput } from '../usage/usage-reader.js';
import type { Usage } from '../usage/usage.js';
import type { Estimate } from './estimator.js';
import type { CallFailure, OnFailure } from './failure.js';

/** How a call ended. */
export type CallEnd =
  /** The provider has stated the usage of the whole call. */
  | { readonly kind: 'stated'; readonly usage: Usage }
  /** The answer stopped early, or does not state its usage. */
  | {
      readonly kind: 'partial';
      /** What was stated so far. */
      readonly usage: Usage | null;
      /** The output that was seen. */
      readonly seen: SeenOutput;
      /** null: the answer is complete. */
      readonly failure: CallFailure | null;
    }
  | { readonly kind: 'unanswered'; readonly failure: CallFailure };

export const NOTHING_SEEN: SeenOutput = { characters: 0, bytes: 0 };

/** What becomes of the hold of a call. */
export type Settlement =
  | { readonly kind: 'rollback' }
  /** Keep what was held. */
  | { readonly kind: 'keep' }
  /** Set it to the cost of this usage. */
  | {
      readonly kind: 'settle';
      readonly usage: Usage;
      /** False: how much of the input was written to the provider's cache is not known. */
      readonly isInputStated: boolean;
    };

/**
 * A call whose usage is not known to the end costs at least its estimate, and what was seen: the provider has counted
 * the tokens that it generated before it noticed that the caller is gone. By `bound`, it costs the most that it can
 * have counted, or where the request states no maximum, that it can have counted of the output that was seen.
 * `tokensSeen`: the estimate of that.
 */
export function settlementOf(
  end: CallEnd,
  { usage: held, bound, isOutputBounded }: Pick<Estimate, 'usage' | 'bound' | 'isOutputBounded'>,
  tokensSeen: number,
  onFailure: OnFailure,
): Settlement {
  if (end.kind === 'stated') return { kind: 'settle', usage: end.usage, isInputStated: true };
  const policy = end.failure === null ? 'commit' : onFailure(end.failure);
  if (policy === 'rollback') return { kind: 'rollback' };
  const least = policy === 'bound' ? bound : held;
  const { usage: stated, seen } = end.kind === 'partial' ? end : { usage: null, seen: NOTHING_SEEN };
  const mostSeen = policy === 'bound' && !isOutputBounded && seen.bytes > 0 ? FRAME_TOKENS + seen.bytes : tokensSeen;
  const outputTokens = Math.max(least.outputTokens, stated?.outputTokens ?? 0, mostSeen);
  // Some vendors state no input before the end: every call has some.
  if (stated !== null && stated.inputTokens > 0) {
    return { kind: 'settle', usage: { ...stated, outputTokens }, isInputStated: true };
  }
  const isHeld = least.inputTokens === held.inputTokens && outputTokens === held.outputTokens;
  return isHeld ? { kind: 'keep' } : { kind: 'settle', usage: { ...least, outputTokens }, isInputStated: false };
}
