import type { LeaseEnd } from '../api/events.js';
import { setNewest } from './bounded.js';

const MOST_LIMITS = 100;

/** What became of the tokens of one limit. `lost`: the lease has expired without a settle. */
export interface Settlement {
  readonly limit: string;
  readonly reserved: number;
  readonly settled: number;
  readonly lost: number;
}

/** Sums what grants have reserved and how their leases have ended, by limit. The names of limits are few. */
export class Settlements {
  readonly #sums = new Map<string, Settlement>();

  add(kind: 'reserved' | 'settled' | 'lost', tokens: Readonly<Record<string, number>>): void {
    for (const [limit, amount] of Object.entries(tokens)) {
      const sum = this.#sums.get(limit) ?? { limit, reserved: 0, settled: 0, lost: 0 };
      setNewest(this.#sums, limit, { ...sum, [kind]: sum[kind] + amount }, MOST_LIMITS);
    }
  }

  /** A rollback gives back what was reserved: it settles nothing. */
  end({ how, tokens }: LeaseEnd): void {
    if (how !== 'rolled-back') this.add(how === 'expired' ? 'lost' : 'settled', tokens);
  }

  rows(): readonly Settlement[] {
    return [...this.#sums.values()].toSorted((a, b) => (a.limit < b.limit ? -1 : 1));
  }
}
