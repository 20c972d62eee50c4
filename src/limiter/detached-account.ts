import type { Amounts } from './request.js';
import type { LeaseAccount, Totals } from './lease-account.js';
import { MILLI } from '../core/units.js';
import { wholeTokens } from '../core/decide.js';
import type { Int } from '../core/int.js';

/** Of a lease that was granted without a store, because the policy said so: it keeps its numbers and writes nothing. */
export class DetachedAccount implements LeaseAccount {
  readonly leaseId: string;
  readonly entityId: string;
  readonly resource: string;
  readonly expiresAtMs = null;
  readonly lost = false;
  readonly holds = false;
  readonly #taken = new Map<string, Int>();

  constructor(leaseId: string, entityId: string, resource: string, consume: Amounts) {
    this.leaseId = leaseId;
    this.entityId = entityId;
    this.resource = resource;
    this.#book(this.planTotals(consume));
  }

  consumed(): Record<string, number> {
    return Object.fromEntries([...this.#taken].map(([name, milli]) => [name, wholeTokens(milli)]));
  }

  /** Nobody knows the limits, so that no name can be wrong. */
  kindOf(): 'rate' {
    return 'rate';
  }

  planTotals(actuals: Amounts): Totals {
    return [Object.entries(actuals).map(([name, tokens]) => ({ name, milli: (tokens ?? 0) * MILLI }))];
  }

  planDeltas(deltas: Amounts): Totals {
    const total = (name: string, tokens: number): number => Number(this.#taken.get(name) ?? 0) + tokens * MILLI;
    return [Object.entries(deltas).map(([name, tokens]) => ({ name, milli: total(name, tokens ?? 0) }))];
  }

  planReturn(except: ReadonlySet<string> | null): Totals {
    return [[...this.#taken.keys()].filter((name) => except?.has(name) !== true).map((name) => ({ name, milli: 0 }))];
  }

  async write(_context: unknown, totals: Totals): Promise<boolean> {
    this.#book(totals);
    return false;
  }

  async extend(): Promise<boolean> {
    return true;
  }

  #book(totals: Totals): void {
    for (const { name, milli } of totals[0] ?? []) this.#taken.set(name, milli);
  }
}
