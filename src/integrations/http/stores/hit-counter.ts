import type { LimitStatus } from '../../../core/bucket/decide.js';
import { Limit } from '../../../core/limit.js';
import type { Decision } from '../../../limiter/acquire/decision.js';
import type { AcquireRequest } from '../../../limiter/acquire/request.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import { encodeCharacters } from '../../encode-characters.js';

/** The part of a limiter that the stores need. */
export type StoreLimiter = Pick<RateLimiter, 'buckets' | 'pause' | 'peek' | 'tryAcquire'>;

/** Options that all stores have. */
export interface HitStoreOptions {
  /** Where the hits are counted. */
  readonly limiter: StoreLimiter;
  /** What is limited. Limiters that count apart need different resources. Default: `http`. */
  readonly resource?: string;
  /** Precedes every key. Default: none. */
  readonly prefix?: string;
}

/** What limiters that count hits in windows know of a client. */
export interface Hits {
  readonly total: number;
  /** Until a hit is granted again, or, if it was granted, until the client may use its whole limit again. */
  readonly resetMs: number;
  readonly isDenied: boolean;
  /** The client is blocked already. */
  readonly isBlocked: boolean;
  /** Gives the hit back. */
  readonly undo: () => Promise<void>;
}

export const DEFAULT_RESOURCE = 'http';
const NAME = 'requests';
const LONGEST_ID = 256;

/**
 * Counts the hits of clients for limiters that count in windows. A window of `limit` hits is a bucket of this capacity
 * that refills over the window: what a client may do is the same in the long run, without a burst at the turn of a window.
 */
export class HitCounter {
  readonly #limiter: StoreLimiter;
  readonly #resource: string;
  readonly #prefix: string;

  constructor({ limiter, resource = DEFAULT_RESOURCE, prefix = '' }: HitStoreOptions) {
    this.#limiter = limiter;
    this.#resource = resource;
    this.#prefix = prefix;
  }

  async hit(key: string, limit: number, windowMs: number): Promise<Hits> {
    // A limit of 0 refuses everything, and a bucket has at least one token.
    if (limit < 1) return { total: limit + 1, resetMs: windowMs, isDenied: true, isBlocked: false, undo: NOTHING };
    const decision = await this.#limiter.tryAcquire(await this.#ask(key, limit, windowMs));
    return decision.granted ? grantedHits(decision) : deniedHits(decision, limit, windowMs);
  }

  /** What `hit` would answer for a client that does nothing. */
  async read(
    key: string,
    limit: number,
    windowMs: number,
  ): Promise<{ readonly total: number; readonly resetMs: number }> {
    if (limit < 1) return { total: limit, resetMs: windowMs };
    const ask = await this.#ask(key, limit, windowMs);
    const [status] = await this.#limiter.peek({ ...ask, consume: { [NAME]: 0 } });
    return {
      total: status === undefined ? 0 : usedOf(status),
      resetMs: status === undefined ? 0 : untilFullMs(status),
    };
  }

  /** Forgets the hits of a client, whatever limits it was counted by. */
  async reset(key: string): Promise<void> {
    const entityId = await entityOf(this.#prefix + key);
    for await (const { resource } of this.#limiter.buckets.list({ entityId })) {
      if (resource.startsWith(`${this.#resource}~`)) await this.#limiter.buckets.reset({ entityId, resource });
    }
  }

  /** Refuses a client for this time. */
  async block(key: string, forMs: number): Promise<void> {
    const entityId = await entityOf(this.#prefix + key);
    await this.#limiter.pause({ entityId, resource: this.#resource, forMs, reason: 'too many requests' });
  }

  async #ask(key: string, limit: number, windowMs: number): Promise<AcquireRequest> {
    const limits = [Limit.custom(NAME, { capacity: limit, refillAmount: limit, refillPeriodMs: windowMs })];
    return { entityId: await entityOf(this.#prefix + key), resource: this.#resource, limits, consume: { [NAME]: 1 } };
  }
}

function grantedHits({ statuses, lease }: Extract<Decision, { granted: true }>): Hits {
  const own = statuses.find(({ limit }) => limit.name === NAME);
  const undo = async (): Promise<void> => {
    await lease.rollback();
  };
  // Without a status the store did not answer and the policy admits the hit.
  if (own === undefined) return { total: 1, resetMs: 0, isDenied: false, isBlocked: false, undo };
  return { total: Math.max(1, usedOf(own)), resetMs: untilFullMs(own), isDenied: false, isBlocked: false, undo };
}

const NOTHING = async (): Promise<void> => {};

function deniedHits(denial: Extract<Decision, { granted: false }>, limit: number, windowMs: number): Hits {
  const { reason, retryAfterMs } = denial;
  const isBlocked = reason === 'paused';
  return { total: limit + 1, resetMs: retryAfterMs ?? windowMs, isDenied: true, isBlocked, undo: NOTHING };
}

function usedOf({ limit, available }: LimitStatus): number {
  return Math.min(limit.capacity, limit.capacity - available);
}

function untilFullMs({ limit, available }: LimitStatus): number {
  return Math.ceil((Math.max(0, limit.capacity - available) * limit.refillPeriodMs) / limit.refillAmount);
}

/** Other limiters accept any text as a key. Characters that no name has are encoded, and a long text is replaced by its hash. */
async function entityOf(key: string): Promise<string> {
  const encoded = encodeCharacters(key, /^\$|[^!"$&-~]/gu);
  if (encoded !== '' && encoded.length <= LONGEST_ID) return encoded;
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(key)));
  return `sha256:${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
