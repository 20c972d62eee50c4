import type { Awaitable, LeaseRecord } from '../../backend.js';
import { wholeTokens } from '../../core/bucket/decide.js';
import { checkEntityId, checkResource } from '../../core/identifiers.js';
import { callStore, type Context } from '../context.js';
import { type Listing, listing, type ListOptions } from './listing.js';

/** A lease that has a holder in a bucket. */
export interface LeaseView {
  readonly id: string;
  /** The slots that it holds, and the rate tokens if an expiry gives them back. */
  readonly amounts: Readonly<Record<string, number>>;
  readonly caller?: string;
  readonly acquiredAt?: Date;
  readonly expiresAt: Date;
}

export class LeasesApi {
  readonly #context: () => Awaitable<Context>;

  constructor(context: () => Awaitable<Context>) {
    this.#context = context;
  }

  /** The holders of a bucket, including expired ones that were not reclaimed yet. */
  list(query: { readonly entityId: string; readonly resource: string } & ListOptions): Listing<LeaseView> {
    return listing(query, viewOf, async (page) => {
      checkEntityId(query.entityId);
      checkResource(query.resource);
      const context = await this.#context();
      return callStore(context, 'listing leases', (call) =>
        context.backend.leases.list(call, query.entityId, query.resource, page),
      );
    });
  }
}

function viewOf({ id, slots, rates, caller, acquiredAtMs, expiresAtMs }: LeaseRecord): LeaseView {
  const amounts = [...slots, ...(rates ?? [])].map(({ name, milli }) => [name, wholeTokens(milli)] as const);
  return {
    id,
    amounts: Object.fromEntries(amounts),
    ...(caller === null ? {} : { caller }),
    acquiredAt: new Date(acquiredAtMs),
    expiresAt: new Date(expiresAtMs),
  };
}
