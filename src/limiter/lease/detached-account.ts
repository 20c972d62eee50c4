import { type Amount, wholeTokens } from '../../core/bucket/decide.js';
import { add, type Int } from '../../core/int.js';
import type { LeaseAccount, Totals } from './lease-account.js';

/** The account of a lease that the outage policy granted without the store. It keeps its numbers and writes nothing. */
export class DetachedAccount implements LeaseAccount {
  readonly leaseId: string;
  readonly entityId: string;
  readonly resource: string;
  readonly expiresAtMs = null;
  readonly lost = false;
  readonly holds = false;
  readonly #taken = new Map<string, Int>();

  constructor(leaseId: string, entityId: string, resource: string, consume: readonly Amount[]) {
    this.leaseId = leaseId;
    this.entityId = entityId;
    this.resource = resource;
    this.#book([consume]);
  }

  consumed(): Record<string, number> {
    return Object.fromEntries([...this.#taken].map(([name, milli]) => [name, wholeTokens(milli)]));
  }

  /** The limits are not known, so every name is accepted. */
  kindOf(): 'rate' {
    return 'rate';
  }

  async learnLimits(): Promise<void> {}

  planTotals(actuals: readonly Amount[]): Totals {
    return [actuals];
  }

  planDeltas(deltas: readonly Amount[]): Totals {
    return [deltas.map(({ name, milli }) => ({ name, milli: add(this.#taken.get(name) ?? 0, milli) }))];
  }

  planReturn(except: ReadonlySet<string> | null): Totals {
    return [[...this.#taken.keys()].filter((name) => except?.has(name) !== true).map((name) => ({ name, milli: 0 }))];
  }

  async write(totals: Totals | null): Promise<boolean> {
    if (totals !== null) this.#book(totals);
    return false;
  }

  async extend(): Promise<boolean> {
    return true;
  }

  #book(totals: Totals): void {
    for (const { name, milli } of totals[0] ?? []) this.#taken.set(name, milli);
  }
}
