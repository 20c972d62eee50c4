import { ValidationError } from '../../../core/errors.js';
import { MAX_AMOUNT } from '../../../core/units.js';
import type { Amounts } from '../../../limiter/acquire/request.js';
import type { Usage } from '../usage/usage.js';
import { costOf, dearestInput, type Price } from './prices.js';

const MEASURES = ['calls', 'tokens', 'input-tokens', 'uncached-input-tokens', 'output-tokens', 'microdollars'] as const;

/** What a limit counts. `calls`: 1 for each call, for limits of requests and for slots. */
export type Measure = (typeof MEASURES)[number];

/** What each limit counts, by the name of the limit. */
export type Measures = Readonly<Record<string, Measure>>;

/** What a call takes before it is sent. A request may state a maximum above all amounts: it holds the greatest one. */
export function holdOf(measures: Measures, estimate: Usage, price: Price | null): Amounts {
  const dearest = price === null ? null : dearestInput(price);
  const held = (measure: Measure): number => Math.min(MAX_AMOUNT, amountOf(measure, estimate, dearest));
  return Object.fromEntries(Object.entries(measures).map(([name, measure]) => [name, held(measure)]));
}

/** What a call has cost, without what every call costs: those amounts stay as they were taken. */
export function actualsOf(measures: Measures, usage: Usage, price: Price | null): Amounts {
  const settled = Object.entries(measures).filter(([, measure]) => measure !== 'calls');
  const cost = (measure: Measure): number => Math.min(MAX_AMOUNT, amountOf(measure, usage, price));
  return Object.fromEntries(settled.map(([name, measure]) => [name, cost(measure)]));
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
