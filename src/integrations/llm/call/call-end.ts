import type { Usage } from '../usage/usage.js';
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
      /** The characters of output that were seen. */
      readonly outputCharacters: number;
      /** null: the answer is complete. */
      readonly failure: CallFailure | null;
    }
  | { readonly kind: 'unanswered'; readonly failure: CallFailure };

/** What becomes of the hold of a call. */
export type Settlement =
  | { readonly kind: 'rollback' }
  /** Keep what was held. */
  | { readonly kind: 'keep' }
  /** Set it to the cost of this usage. */
  | { readonly kind: 'settle'; readonly usage: Usage };

/**
 * A call whose usage is not known to the end keeps its estimate, or more if more was seen: the provider has counted the
 * tokens that it generated before it noticed that the caller is gone.
 */
export function settlementOf(
  end: CallEnd,
  estimate: Usage,
  outputTokensSeen: number,
  onFailure: OnFailure,
): Settlement {
  if (end.kind === 'stated') return { kind: 'settle', usage: end.usage };
  if (end.failure !== null && onFailure(end.failure) === 'rollback') return { kind: 'rollback' };
  if (end.kind === 'unanswered') return { kind: 'keep' };
  const stated = end.usage;
  const outputTokens = Math.max(estimate.outputTokens, stated?.outputTokens ?? 0, outputTokensSeen);
  if (stated === null && outputTokens === estimate.outputTokens) return { kind: 'keep' };
  return { kind: 'settle', usage: { ...estimate, ...stated, outputTokens } };
}
