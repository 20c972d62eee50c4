import type { Int } from './int.js';

/** Milliseconds since the epoch. */
export type EpochMs = number;

/** Thousandths of a token, the unit of stored amounts and of calculations. May be negative (debt) and may exceed 2^53. */
export type Millitokens = Int;

export const MILLI = 1000;

/** The largest amount, capacity or delta that one call or limit may name, in whole tokens. */
export const MAX_AMOUNT = 1e12;

/** The longest chain that spending cascades over: an entity and its parents. */
export const MAX_CHAIN = 8;
