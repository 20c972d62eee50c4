/**
 * A whole number of any size: a `number` while that is exact, a `bigint` beyond 2^53.
 * Comparison operators mix the two exactly; sums and products go through this file.
 */
export type Int = number | bigint;

/** The smallest exact form of a bigint. */
export function toInt(value: bigint): Int {
  const narrowed = Number(value);
  return Number.isSafeInteger(narrowed) ? narrowed : value;
}

/** Parses decimal digits. Up to 15 of them are exact as a double. */
export function parseInt10(digits: string): Int {
  return digits.length <= 15 ? Number(digits) : toInt(BigInt(digits));
}

export function add(a: Int, b: Int): Int {
  if (typeof a === 'number' && typeof b === 'number') {
    const sum = a + b;
    if (Number.isSafeInteger(sum)) return sum;
  }
  return toInt(BigInt(a) + BigInt(b));
}

export function sub(a: Int, b: Int): Int {
  if (typeof a === 'number' && typeof b === 'number') {
    const difference = a - b;
    if (Number.isSafeInteger(difference)) return difference;
  }
  return toInt(BigInt(a) - BigInt(b));
}

export function mul(a: number, b: number): Int {
  const product = a * b;
  return Number.isSafeInteger(product) ? product : toInt(BigInt(a) * BigInt(b));
}

export function min(a: Int, b: Int): Int {
  return a < b ? a : b;
}

export function max(a: Int, b: Int): Int {
  return a >= b ? a : b;
}

/** floor(value / divisor) for a positive divisor, towards minus infinity. */
export function floorDiv(value: Int, divisor: number): Int {
  if (typeof value === 'number') return exactFloor(value, divisor);
  const wide = BigInt(divisor);
  const quotient = value / wide;
  return toInt(value % wide < 0n ? quotient - 1n : quotient);
}

/** floor(a * b / divisor), computed exactly; a and b are not negative. */
export function mulDivFloor(a: Int, b: number, divisor: number): Int {
  if (typeof a === 'number') {
    const product = a * b;
    if (Number.isSafeInteger(product)) return exactFloor(product, divisor);
    const quotient = mulDivFloorByParts(a, b, divisor);
    if (quotient !== null) return quotient;
  }
  return toInt((BigInt(a) * BigInt(b)) / BigInt(divisor));
}

/**
 * With b = whole * divisor + rest, a * b / divisor is a * whole + a * rest / divisor. Limits of billions then need no
 * bigints, which take ten times as long. null: a part is too large as well.
 */
function mulDivFloorByParts(a: number, b: number, divisor: number): number | null {
  const whole = exactFloor(b, divisor);
  const high = a * whole;
  const low = a * (b - whole * divisor);
  if (!Number.isSafeInteger(high) || !Number.isSafeInteger(low)) return null;
  const sum = high + exactFloor(low, divisor);
  return Number.isSafeInteger(sum) ? sum : null;
}

/** ceil(a * b / divisor), computed exactly; a and b are not negative. */
export function mulDivCeil(a: Int, b: number, divisor: number): Int {
  const wide = BigInt(divisor);
  if (typeof a === 'number') {
    const product = a * b;
    if (Number.isSafeInteger(product)) return -exactFloor(-product, divisor);
  }
  return toInt((BigInt(a) * BigInt(b) + wide - 1n) / wide);
}

/**
 * A quotient of doubles rounds to nearest, so just below a whole number its floor is one too high. The remainder shows
 * that. The remainder is exact because the truncated quotient times the divisor is no further from 0 than the value;
 * with a floored negative quotient it could pass -2^53.
 */
export function exactFloor(value: number, divisor: number): number {
  const quotient = Math.trunc(value / divisor);
  const rest = value - quotient * divisor;
  if (rest < 0) return quotient - 1;
  return rest >= divisor ? quotient + 1 : quotient;
}
