/**
 * Randomness for short pauses between attempts: 2 ms instead of 25 ms. Not shorter: write ids use the same source, and a
 * write whose id equals that of another write, made in the same millisecond of a fake clock, looks as if it had landed.
 */
export function quickRandom(): number {
  return Math.random() / 16;
}
