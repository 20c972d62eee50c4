import { ValidationError } from '../../../core/errors.js';
import { HitCounter, type Hits, type HitStoreOptions } from './hit-counter.js';

export interface ExpressStoreOptions extends HitStoreOptions {
  /** The limit, where the middleware computes it for each request: stores are told only of a number. */
  readonly limit?: number;
}

/** What express-rate-limit 7 and 8 and hono-rate-limiter tell a store. */
interface MiddlewareOptions {
  readonly windowMs: number;
  readonly limit?: unknown;
  readonly skipFailedRequests?: boolean;
  readonly skipSuccessfulRequests?: boolean;
}

interface ClientInfo {
  readonly totalHits: number;
  readonly resetTime: Date;
}

/** A grant that a `decrement` may give back. */
interface Undoable {
  readonly undo: Hits['undo'];
  readonly untilMs: number;
}

/** A store for express-rate-limit and hono-rate-limiter. Give each limiter its own, with a `resource` of its own. */
export class ExpressRateLimitStore {
  readonly localKeys = false;
  readonly prefix: string;
  readonly #hits: HitCounter;
  #limit: number | undefined;
  #windowMs = 60_000;
  #keepsGrants = false;
  readonly #grants = new Map<string, Undoable[]>();

  constructor(options: ExpressStoreOptions) {
    this.prefix = options.prefix ?? '';
    this.#hits = new HitCounter(options);
    this.#limit = options.limit;
  }

  /** Called by the middleware with its options. */
  init({ windowMs, limit, skipFailedRequests, skipSuccessfulRequests }: MiddlewareOptions): void {
    this.#windowMs = windowMs;
    if (this.#limit === undefined && typeof limit === 'number') this.#limit = limit;
    this.#keepsGrants = skipFailedRequests === true || skipSuccessfulRequests === true;
  }

  /** The hits of a client, without counting one. */
  async get(key: string): Promise<ClientInfo> {
    const { total, resetMs } = await this.#hits.read(key, this.#limitOf(), this.#windowMs);
    return { totalHits: total, resetTime: new Date(Date.now() + resetMs) };
  }

  /** Counts one hit of a client. */
  async increment(key: string): Promise<ClientInfo> {
    const { total, resetMs, isDenied, undo } = await this.#hits.hit(key, this.#limitOf(), this.#windowMs);
    if (!isDenied && this.#keepsGrants) this.#keep(key, undo);
    return { totalHits: total, resetTime: new Date(Date.now() + resetMs) };
  }

  /** Which of the grants of a client is given back makes no difference: each took one. */
  async decrement(key: string): Promise<void> {
    const grants = this.#grants.get(key);
    const latest = grants?.pop();
    if (grants?.length === 0) this.#grants.delete(key);
    await latest?.undo();
  }

  /** Forgets the hits of a client. */
  async resetKey(key: string): Promise<void> {
    this.#grants.delete(key);
    await this.#hits.reset(key);
  }

  #limitOf(): number {
    if (this.#limit !== undefined) return this.#limit;
    throw new ValidationError(
      'limit',
      'a number in the options of the store, because that of the middleware is a function',
      undefined,
    );
  }

  /** After a window, what was taken has come back, so that nothing is left to give back. */
  #keep(key: string, undo: Hits['undo']): void {
    const nowMs = Date.now();
    for (const [other, grants] of this.#grants) {
      if ((grants.at(-1)?.untilMs ?? 0) > nowMs) break;
      this.#grants.delete(other);
    }
    const recent = (this.#grants.get(key) ?? []).filter(({ untilMs }) => untilMs > nowMs);
    recent.push({ undo, untilMs: nowMs + this.#windowMs });
    // The map keeps the clients in the order of their last hit.
    this.#grants.delete(key);
    this.#grants.set(key, recent);
  }
}
