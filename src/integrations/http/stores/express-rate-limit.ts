import { ValidationError } from '../../../core/errors.js';
import { DEFAULT_RESOURCE, HitCounter, type Hits, type HitStoreOptions } from './hit-counter.js';

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

/** Refused hits of a client that the middleware may decrement, although they took nothing. */
interface Refused {
  readonly count: number;
  readonly untilMs: number;
}

/** The middleware compares the time before it decrements. */
const GRACE_MS = 1_000;

/** A store for express-rate-limit and hono-rate-limiter. Give each limiter its own, with a `resource` of its own. */
export class ExpressRateLimitStore {
  readonly localKeys = false;
  /**
   * express-rate-limit takes two stores of one class for one, unless their prefixes differ: it would complain of
   * counting a request twice.
   */
  readonly prefix: string;
  readonly #hits: HitCounter;
  #limit: number | undefined;
  #windowMs = 60_000;
  #keepsGrants = false;
  #keepsRefused = false;
  readonly #grants = new Map<string, Undoable[]>();
  readonly #refused = new Map<string, Refused>();

  constructor(options: ExpressStoreOptions) {
    this.prefix = `${options.resource ?? DEFAULT_RESOURCE} ${options.prefix ?? ''}`;
    this.#hits = new HitCounter(options);
    this.#limit = options.limit;
  }

  /** Called by the middleware with its options. */
  init({ windowMs, limit, skipFailedRequests, skipSuccessfulRequests }: MiddlewareOptions): void {
    this.#windowMs = windowMs;
    if (this.#limit === undefined && typeof limit === 'number') this.#limit = limit;
    this.#keepsGrants = skipFailedRequests === true || skipSuccessfulRequests === true;
    this.#keepsRefused = skipFailedRequests === true;
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
    if (isDenied && this.#keepsRefused) this.#keepRefused(key, resetMs);
    return { totalHits: total, resetTime: new Date(Date.now() + resetMs) };
  }

  /**
   * Which of the grants of a client is given back makes no difference: each took one. To express-rate-limit a request that it
   * refused has failed, and is decremented too: that must not give back what another request took.
   */
  async decrement(key: string): Promise<void> {
    if (this.#dropRefused(key)) return;
    const grants = this.#grants.get(key);
    const latest = grants?.pop();
    if (grants?.length === 0) this.#grants.delete(key);
    await latest?.undo();
  }

  /** Forgets the hits of a client. */
  async resetKey(key: string): Promise<void> {
    this.#grants.delete(key);
    this.#refused.delete(key);
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

  /** The middleware decrements only until the time that it was told. */
  #keepRefused(key: string, resetMs: number): void {
    const nowMs = Date.now();
    for (const [other, { untilMs }] of this.#refused) {
      if (untilMs > nowMs) break;
      this.#refused.delete(other);
    }
    const { count } = this.#refused.get(key) ?? { count: 0 };
    this.#refused.delete(key);
    this.#refused.set(key, { count: count + 1, untilMs: nowMs + resetMs + GRACE_MS });
  }

  /** Whether a refused hit was there to be decremented. */
  #dropRefused(key: string): boolean {
    const refused = this.#refused.get(key);
    if (refused === undefined) return false;
    const { count, untilMs } = refused;
    const isOver = untilMs <= Date.now();
    if (isOver || count === 1) this.#refused.delete(key);
    else this.#refused.set(key, { count: count - 1, untilMs });
    return !isOver;
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
