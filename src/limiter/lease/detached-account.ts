import { type Amount, wholeTokens } from '../../core/bucket/decide.js';
import { add, type Int } from '../../core/int.js';
import type { LeaseAccount } from './lease-account.js';
import type { LeaseOperation, Performed } from './lease-operation.js';

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
    this.#book(consume);
  }

  consumed(): Record<string, number> {
    return Object.fromEntries([...this.#taken].map(([name, milli]) => [name, wholeTokens(milli)]));
  }

  /** The limits are not known, so every name is accepted. */
  kindOf(): 'rate' {
    return 'rate';
  }

  async learnLimits(): Promise<void> {}

  async perform(operation: LeaseOperation): Promise<Performed> {
    this.#book(this.#totalsAfter(operation));
    return 'done';
  }

  #totalsAfter(operation: LeaseOperation): readonly Amount[] {
    switch (operation.kind) {
      case 'settle':
      case 'commit':
        return operation.totals;
      case 'adjust':
        return operation.deltas.map(({ name, milli }) => ({ name, milli: add(this.#taken.get(name) ?? 0, milli) }));
      case 'rollback':
        return this.#none(() => true);
      case 'keep':
        return this.#none((name) => !operation.names.has(name));
      case 'release':
        return [];
    }
  }

  #none(isReturned: (name: string) => boolean): readonly Amount[] {
    return [...this.#taken.keys()].filter(isReturned).map((name) => ({ name, milli: 0 }));
  }

  async extend(): Promise<boolean> {
    return true;
  }

  #book(totals: readonly Amount[]): void {
    for (const { name, milli } of totals) this.#taken.set(name, milli);
  }
}
