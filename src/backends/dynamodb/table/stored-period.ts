import type { LimitKind } from '../../../core/limit-kind.js';
import { Limit, type RateOptions } from '../../../core/limit.js';

/** The stored refill period of slots. */
const SLOTS_PERIOD = 0;

/** The stored refill period of an unlimited limit, which has no other number and no balance. */
export const UNLIMITED_PERIOD = -1;

/** The refill period as buckets and configs store it. It also shows the kind of the limit, which is not stored. */
export function encodePeriod({ kind, refillPeriodMs }: Pick<Limit, 'kind' | 'refillPeriodMs'>): number {
  switch (kind) {
    case 'rate':
      return refillPeriodMs;
    case 'concurrent':
      return SLOTS_PERIOD;
    case 'unlimited':
      return UNLIMITED_PERIOD;
  }
}

/** The kind of the limit that has this stored period. */
export function decodeKind(storedPeriod: number): LimitKind {
  switch (storedPeriod) {
    case SLOTS_PERIOD:
      return 'concurrent';
    case UNLIMITED_PERIOD:
      return 'unlimited';
    default:
      return 'rate';
  }
}

/** The numbers that are stored of a limit. */
type StoredNumbers = Pick<Limit, 'capacity' | 'refillAmount' | 'refillPeriodMs'>;

/** The limit of this kind that has the stored numbers. */
export function limitOfKind(
  kind: LimitKind,
  name: string,
  numbers: StoredNumbers,
  options: Omit<RateOptions, 'burst'> = {},
): Limit {
  switch (kind) {
    case 'rate':
      return Limit.custom(name, { ...numbers, ...options });
    case 'concurrent':
      return Limit.concurrent(name, numbers.capacity, options);
    case 'unlimited':
      return Limit.unlimited(name, options);
  }
}
