import type { RateLimitExceeded } from '../../../core/rate-limit-exceeded.js';
import type { Amounts } from '../../../limiter/acquire/request.js';
import type { Estimate } from './estimator.js';

/**
 * The estimate of a call that no wait would have granted, with less output: output that the request does not state must
 * not refuse it for ever. It is the average of such calls, and no more than the limits can hold. null: the output is
 * not to blame.
 */
export function smallerEstimate(
  { violations }: Pick<RateLimitExceeded, 'violations'>,
  estimate: Estimate,
  holdOf: (estimate: Estimate) => Amounts,
): Estimate | null {
  const fits = (outputTokens: number): boolean => {
    const hold = holdOf(withOutput(estimate, outputTokens));
    return violations.every(
      ({ limit, requested, reserved = 0 }) => (hold[limit.name] ?? requested) + reserved <= limit.capacity,
    );
  };
  const most = Math.min(estimate.averageOutput ?? 0, estimate.usage.outputTokens - 1);
  // A limit of 0 blocks its calls: a call without any output would pass it.
  if (most < 1 || !fits(1)) return null;
  let [outputTokens, tooMany] = [1, most + 1];
  while (tooMany - outputTokens > 1) {
    const middle = Math.floor((outputTokens + tooMany) / 2);
    if (fits(middle)) outputTokens = middle;
    else tooMany = middle;
  }
  return withOutput(estimate, outputTokens);
}

/** The maximum that a request states stays its bound. */
function withOutput(estimate: Estimate, outputTokens: number): Estimate {
  const { usage, bound, isOutputBounded } = estimate;
  return {
    ...estimate,
    usage: { ...usage, outputTokens },
    bound: isOutputBounded ? bound : { ...bound, outputTokens },
  };
}
