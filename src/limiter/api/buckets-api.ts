import type { Awaitable, BucketRecord } from '../../backend.js';
import { wholeTokens } from '../../core/bucket/decide.js';
import { ValidationError } from '../../core/errors.js';
import { checkBucketResource, checkEntityId, checkResource } from '../../core/identifiers.js';
import { hasBalance } from '../../core/limit-kind.js';
import type { Limit } from '../../core/limit.js';
import { type PauseView, viewPause } from '../../core/pause.js';
import { callStore, changeStore, type Context } from '../context.js';
import { type Listing, listing, type ListOptions } from './listing.js';

/** The state of one bucket, in whole tokens. */
export interface BucketView {
  readonly entityId: string;
  /** `{resource}~{hash}` for a bucket of per-call limits. */
  readonly resource: string;
  readonly limits: readonly BucketLimit[];
  /** The number of leases with a holder in the bucket. */
  readonly holders: number;
  /** Grants since the bucket was created. */
  readonly acquires: number;
  /** Leases that expired since the bucket was created. */
  readonly expired: number;
  /** The stored pause of this bucket, which may have ended. Left out if there is none. */
  readonly paused?: PauseView;
}

/** One limit of a bucket, in whole tokens. */
export interface BucketLimit {
  readonly limit: Limit;
  /** `Infinity` for an unlimited limit. */
  readonly available: number;
  /** Net of refunds, since the bucket was created. */
  readonly consumed: number;
}

/** `limiter.buckets`: the state of buckets. */
export class BucketsApi {
  readonly #context: () => Awaitable<Context>;

  constructor(context: () => Awaitable<Context>) {
    this.#context = context;
  }

  /** The buckets of an entity, or the buckets of a resource over all entities. */
  list(query: ({ readonly entityId: string } | { readonly resource: string }) & ListOptions): Listing<BucketView> {
    return listing(query, viewOf, async (page) => {
      const ofEntity = 'entityId' in query;
      if (ofEntity) checkEntityId(query.entityId);
      else checkResource(query.resource);
      const context = await this.#context();
      return callStore(context, 'listing buckets', (call) =>
        ofEntity
          ? context.backend.buckets.listOfEntity(call, query.entityId, page)
          : context.backend.buckets.listOfResource(call, query.resource, page),
      );
    });
  }

  /** The bucket with the names that `list` shows. null: nothing was ever taken, or the bucket expired after a long idle time. */
  async get(key: { readonly entityId: string; readonly resource: string }): Promise<BucketView | null> {
    checkKey(key);
    const context = await this.#context();
    const record = await callStore(context, 'reading a bucket', (call) =>
      context.backend.buckets.read(call, key.entityId, key.resource),
    );
    return record === undefined ? null : viewOf(record);
  }

  /** Fills the bucket and removes its holders. False: there is no such bucket; a new one starts full. */
  async reset(key: { readonly entityId: string; readonly resource: string }): Promise<boolean> {
    checkKey(key);
    const context = await this.#context();
    const reset = await changeStore(context, 'resetting a bucket', (call) =>
      context.backend.buckets.reset(call, key.entityId, key.resource),
    );
    context.lines.fill(key);
    return reset;
  }
}

function checkKey(key: { readonly entityId: string; readonly resource: string }): void {
  if (typeof key !== 'object' || key === null) throw new ValidationError('bucket', '{ entityId, resource }', key);
  checkEntityId(key.entityId);
  checkBucketResource(key.resource);
}

function viewOf({ limits, pause, ...record }: BucketRecord): BucketView {
  return {
    ...record,
    ...(pause === undefined ? {} : { paused: viewPause(pause) }),
    limits: limits.map(({ limit, availableMilli, consumedMilli }) => ({
      limit,
      available: hasBalance(limit.kind) ? wholeTokens(availableMilli) : Number.POSITIVE_INFINITY,
      consumed: wholeTokens(consumedMilli),
    })),
  };
}
