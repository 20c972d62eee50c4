import { DEFAULT_RESOURCE, HitCounter, type HitStoreOptions } from './hit-counter.js';

/** What @nestjs/throttler expects: times in whole seconds. */
interface ThrottlerRecord {
  totalHits: number;
  timeToExpire: number;
  isBlocked: boolean;
  timeToBlockExpire: number;
}

/** Storage for @nestjs/throttler: `ThrottlerModule.forRoot({ throttlers, storage })`. */
export class NestThrottlerStorage {
  readonly #options: HitStoreOptions;
  readonly #counters = new Map<string, HitCounter>();

  constructor(options: HitStoreOptions) {
    this.#options = options;
  }

  /** Durations are in milliseconds. */
  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<ThrottlerRecord> {
    const hits = this.#counterOf(throttlerName);
    const { total, resetMs, isDenied, isBlocked } = await hits.hit(key, limit, ttl);
    // Without a block the next hit is granted as soon as one token is there. The default of `blockDuration` is `ttl`.
    const blockMs = isDenied && !isBlocked && blockDuration > ttl ? blockDuration : 0;
    if (blockMs > 0) await hits.block(key, blockMs);
    const waitMs = isDenied ? Math.max(resetMs, blockMs) : 0;
    return {
      totalHits: total,
      timeToExpire: Math.ceil(resetMs / 1000),
      isBlocked: isDenied,
      timeToBlockExpire: Math.ceil(waitMs / 1000),
    };
  }

  /** Throttlers with different names count apart. */
  #counterOf(throttlerName: string): HitCounter {
    let counter = this.#counters.get(throttlerName);
    if (counter === undefined) {
      const resource = `${this.#options.resource ?? DEFAULT_RESOURCE}/${throttlerName}`;
      this.#counters.set(throttlerName, (counter = new HitCounter({ ...this.#options, resource })));
    }
    return counter;
  }
}
