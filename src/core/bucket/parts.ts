import { type Int, toInt } from '../int.js';

/**
 * The part of an amount that the shard at this position gets, by the weights of the shards. The parts up to each shard are
 * rounded, not the parts themselves, so that they add up to the whole. Without any weight the first gets everything.
 */
export function partOfWhole(milli: Int, weights: readonly bigint[], at: number): Int {
  const weightUpTo = (end: number): bigint => weights.slice(0, end).reduce((sum, weight) => sum + weight, 0n);
  const whole = weightUpTo(weights.length);
  if (whole === 0n) return at === 0 ? milli : 0;
  const upTo = (end: number): bigint => (BigInt(milli) * weightUpTo(end)) / whole;
  return toInt(upTo(at + 1) - upTo(at));
}
