/** The least number of pairs by which a goal is decided. */
export const LEAST_PAIRS = 9;

/** Measurements of one thing: the median, and the quartiles, between which the middle half lies. */
export interface Spread {
  readonly low: number;
  readonly median: number;
  readonly high: number;
  readonly count: number;
  readonly values: readonly number[];
}

export function spreadOf(values: readonly number[]): Spread {
  // A figure that could not be computed must not disappear in the order of the others.
  const sorted = values.some(Number.isNaN) ? [] : values.toSorted((a, b) => a - b);
  return {
    low: quantile(sorted, 0.25),
    median: quantile(sorted, 0.5),
    high: quantile(sorted, 0.75),
    count: values.length,
    values,
  };
}

/** Interpolates between the two nearest values. The values are sorted. */
export function quantile(sorted: ArrayLike<number>, part: number): number {
  const at = (sorted.length - 1) * part;
  const below = sorted[Math.floor(at)] ?? Number.NaN;
  const above = sorted[Math.ceil(at)] ?? Number.NaN;
  // Without this, the distance between two infinite ratios would not be a number.
  return below === above ? below : below + (above - below) * (at - Math.floor(at));
}

/** `2.31x (2.20-2.45)` */
export function printRatio({ low, median, high }: Spread): string {
  return `${digits(median)}x (${digits(low)}-${digits(high)})`;
}

function digits(ratio: number): string {
  return ratio >= 100 ? ratio.toFixed(0) : ratio.toFixed(2);
}
