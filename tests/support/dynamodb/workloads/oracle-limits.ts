import type { Rate } from '../../../../src/core/bucket/bucket.js';
import { Limit } from '../../../../src/core/limit.js';
import type { Scenario } from '../../../oracle/scenario.js';

/** The name of a limit of the oracle, which knows limits by their index. */
export function nameOf(limit: number): string {
  return `limit-${limit}`;
}

export function limitOf(limit: number, { capacityMilli, refillMilli, refillPeriodMs }: Rate): Limit {
  if (refillPeriodMs === 0) return Limit.concurrent(nameOf(limit), capacityMilli / 1_000);
  return Limit.custom(nameOf(limit), {
    capacity: capacityMilli / 1_000,
    refillAmount: refillMilli / 1_000,
    refillPeriodMs,
  });
}

/** Limits have whole tokens; the rates of the oracle may not. */
export function inWholeTokens(scenario: Scenario): Scenario {
  const whole = (milli: number): number => Math.ceil(milli / 1_000) * 1_000;
  const rounded = (rate: Rate): Rate => ({
    ...rate,
    capacityMilli: whole(rate.capacityMilli),
    refillMilli: whole(rate.refillMilli),
  });
  return {
    ...scenario,
    rates: scenario.rates.map(rounded),
    steps: scenario.steps.map((step) =>
      step.does.kind === 'change' ? { ...step, does: { ...step.does, rate: rounded(step.does.rate) } } : step,
    ),
  };
}
