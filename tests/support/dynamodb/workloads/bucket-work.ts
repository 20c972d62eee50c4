import type { EpochMs } from '../../../../src/core/units.js';
import { isHeadgateError } from '../../../../src/core/errors.js';
import type { Lease } from '../../../../src/limiter/lease/lease.js';
import type { RateLimiter } from '../../../../src/limiter/rate-limiter.js';

/** An operation of a client. The sender numbers the leases. */
export type Operation =
  | {
      readonly kind: 'take';
      readonly lease: number;
      readonly entityId: string;
      readonly amount: number;
      readonly priority?: string;
      /** The amount may be cut. */
      readonly atMost?: true;
    }
  | { readonly kind: 'settle'; readonly lease: number; readonly total: number }
  | { readonly kind: 'rollback'; readonly lease: number };

/** The answer of the limiter. */
export type Outcome =
  /** `exceeded`: by a shadow, of which nothing was taken. `consumed`: the amount that the lease says it took. */
  | { readonly kind: 'granted'; readonly exceeded: boolean; readonly consumed: number }
  | { readonly kind: 'denied'; readonly reason: string }
  | { readonly kind: 'done' }
  /** `code` is null for an error that is not Headgate's. */
  | { readonly kind: 'failed'; readonly code: string | null; readonly message: string };

export const RESOURCE = 'model';
export const LIMIT = 'tokens';

/** One client: a limiter, and the leases that it was granted. */
export class BucketWorker {
  readonly #limiter: RateLimiter;
  readonly #leases = new Map<number, Lease>();

  constructor(limiter: RateLimiter) {
    this.#limiter = limiter;
  }

  /** Runs the operations concurrently. The limiter decides which of them share a write. */
  async doAll(operations: readonly Operation[]): Promise<readonly Outcome[]> {
    return Promise.all(operations.map(async (operation) => this.#do(operation)));
  }

  async #do(operation: Operation): Promise<Outcome> {
    try {
      return operation.kind === 'take' ? await this.#take(operation) : await this.#correct(operation);
    } catch (error) {
      const code = isHeadgateError(error) ? error.code : null;
      return { kind: 'failed', code, message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
    }
  }

  async #take(operation: Extract<Operation, { readonly kind: 'take' }>): Promise<Outcome> {
    const { lease, entityId, amount, priority, atMost } = operation;
    const decision = await this.#limiter.tryAcquire({
      entityId,
      resource: RESOURCE,
      consume: { [LIMIT]: amount },
      ...(priority === undefined ? {} : { priority }),
      ...(atMost === undefined ? {} : { atMost: LIMIT }),
    });
    if (!decision.granted) return { kind: 'denied', reason: decision.reason };
    this.#leases.set(lease, decision.lease);
    const exceeded = decision.statuses.some((status) => status.exceeded);
    return { kind: 'granted', exceeded, consumed: decision.lease.consumed[LIMIT] ?? 0 };
  }

  async #correct(operation: Exclude<Operation, { readonly kind: 'take' }>): Promise<Outcome> {
    const lease = this.#leases.get(operation.lease);
    if (lease === undefined) throw new RangeError(`No lease ${operation.lease}`);
    if (operation.kind === 'settle') await lease.settle({ [LIMIT]: operation.total });
    else await lease.rollback();
    this.#leases.delete(operation.lease);
    return { kind: 'done' };
  }
}

/** An order for a process of takers. */
export type TakerOrder =
  | {
      readonly kind: 'open';
      readonly endpoint: string;
      readonly region: string;
      readonly table: string;
      readonly namespace: string;
      /** Write units a second; see `PressureOptions`. */
      readonly pressure: { readonly paceAbove: number; readonly splitAbove: number };
      readonly nowMs: EpochMs;
    }
  | { readonly kind: 'tick'; readonly nowMs: EpochMs; readonly operations: readonly Operation[] };

/** The answer to an order. `reported` are failures that no caller awaited. */
export interface TakerNews {
  readonly outcomes: readonly Outcome[];
  readonly reported: readonly string[];
  /** Requests since the last answer. */
  readonly requests: number;
}
