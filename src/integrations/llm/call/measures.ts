import { ValidationError } from '../../../core/errors.js';
import type { Amounts } from '../../../limiter/acquire/request.js';
import type { Usage } from '../usage/usage.js';
import { costOf, dearestInput, type Price } from './prices.js';

const MEASURES = ['calls', 'tokens', 'input-tokens', 'uncached-input-tokens', 'output-tokens', 'microdollars'] as const;

/** What a limit counts. `calls`: 1 for each call, for limits of requests and for slots. */
export type Measure = (typeof MEASURES)[number];

/** What each limit counts, by the name of the limit. */
export type Measures = Readonly<Record<string, Measure>>;

/** What a call takes before it is sent. */
export function holdOf(measures: Measures, estimate: Usage, price: Price | null): Amounts {
  const dearest = price === null ? null : dearestInput(price);
  return amountsOf(measures, Object.keys(measures), estimate, dearest);
}

/** What a call has cost, without what every call costs: those amounts stay as they were taken. */
export function actualsOf(measures: Measures, usage: Usage, price: Price | null): Amounts {
  const settled = Object.keys(measures).filter((name) => measures[name] !== 'calls');
  return amountsOf(measures, settled, usage, price);
}

export function needsPrice(measures: Measures): boolean {
  return Object.values(measures).includes('microdollars');
}

export function checkMeasures(measures: Measures): void {
  if (Object.keys(measures).length === 0) throw new ValidationError('measures', 'at least one limit', measures);
  for (const [name, measure] of Object.entries(measures)) {
    if (MEASURES.includes(measure)) continue;
    throw new ValidationError(`measures.${name}`, `one of ${MEASURES.join(', ')}`, measure);
  }
}

function amountsOf(measures: Measures, names: readonly string[], usage: Usage, price: Price | null): Amounts {
  return Object.fromEntries(names.map((name) => [name, amountOf(measures[name] ?? 'calls', usage, price)]));
}

function amountOf(measure: Measure, usage: Usage, price: Price | null): number {
  switch (measure) {
    case 'calls':
      return 1;
    case 'tokens':
      return usage.inputTokens + usage.outputTokens;
    case 'input-tokens':
      return usage.inputTokens;
    case 'uncached-input-tokens':
      return Math.max(0, usage.inputTokens - usage.cachedInputTokens);
    case 'output-tokens':
      return usage.outputTokens;
    case 'microdollars':
      return price === null ? 0 : costOf(price, usage);
  }
}
