import { ValidationError } from '../../../core/errors.js';
import type { Usage } from '../usage/usage.js';

/** The price of a model in micro-dollars for one token: the same number as dollars for a million tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** Input that the provider reads from its cache. Default: `input`. */
  readonly cachedInput?: number;
  /** Input that the provider writes to its cache. Default: `input`. */
  readonly cacheWrite?: number;
}

/** Prices by model. A key also covers the models whose names continue it after a `-`, `:` or `@`, such as dated versions. */
export type Prices = Readonly<Record<string, Price>>;

/** Prices are computed in millionths of a micro-dollar, as whole numbers. */
const PARTS = 1_000_000;

export function priceOf(prices: Prices, model: string): Price {
  const covers = (key: string): boolean =>
    model === key || (model.startsWith(key) && /[-:@]/.test(model[key.length] ?? ''));
  const [key] = Object.keys(prices)
    .filter(covers)
    .toSorted((one, other) => other.length - one.length);
  const price = key === undefined ? undefined : prices[key];
  if (price === undefined) throw new ValidationError('prices', 'a price of every model that is called', model);
  return price;
}

/** The cost in whole micro-dollars, rounded up, without errors of floating point. */
export function costOf(price: Price, usage: Usage): number {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } = usage;
  const plain = Math.max(0, inputTokens - cachedInputTokens - cacheWriteTokens);
  const parts =
    cost(plain, price.input) +
    cost(cachedInputTokens, price.cachedInput ?? price.input) +
    cost(cacheWriteTokens, price.cacheWrite ?? price.input) +
    cost(outputTokens, price.output);
  return Number((parts + BigInt(PARTS) - 1n) / BigInt(PARTS));
}

/** The price of a hold: its input may have to be written to the cache. */
export function dearestInput(price: Price): Price {
  return { ...price, input: Math.max(price.input, price.cacheWrite ?? 0) };
}

export function checkPrices(prices: Prices): void {
  for (const [model, price] of Object.entries(prices)) {
    for (const [name, amount] of Object.entries(price)) {
      if (typeof amount === 'number' && amount >= 0 && amount <= 1e6) continue;
      throw new ValidationError(`prices.${model}.${name}`, 'micro-dollars for one token, from 0 to 1000000', amount);
    }
  }
}

function cost(tokens: number, price: number): bigint {
  return BigInt(tokens) * BigInt(Math.round(price * PARTS));
}
