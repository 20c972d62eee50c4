import type { EpochMs } from '../../../src/core/units.js';
import { isHeadgateError } from '../../../src/core/errors.js';
import type { Lease } from '../../../src/limiter/lease/lease.js';
import type { RateLimiter } from '../../../src/limiter/rate-limiter.js';

/** An order for a client. The sender names the leases. */
export type Operation =
  | { readonly kind: 'take'; readonly lease: number; readonly entityId: string; readonly amount: number }
  | { readonly kind: 'settle'; readonly lease: number; readonly total: number }
  | { readonly kind: 'rollback'; readonly lease: number };

/** What it was told by the limiter. */
export type Outcome =
  | { readonly kind: 'granted' }
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

  /** All at once: what is written together with what is the limiter's business. */
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

  async #take({ lease, entityId, amount }: Extract<Operation, { readonly kind: 'take' }>): Promise<Outcome> {
    const decision = await this.#limiter.tryAcquire({ entityId, resource: RESOURCE, consume: { [LIMIT]: amount } });
    if (!decision.granted) return { kind: 'denied', reason: decision.reason };
    this.#leases.set(lease, decision.lease);
    return { kind: 'granted' };
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

/** What a process of takers hears. */
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

/** What it answers to each order. `reported` are failures that no caller awaited. */
export interface TakerNews {
  readonly outcomes: readonly Outcome[];
  readonly reported: readonly string[];
  /** Requests since the last answer. */
  readonly requests: number;
}
