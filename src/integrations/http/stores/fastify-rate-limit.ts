import { HitCounter, type HitStoreOptions } from './hit-counter.js';

type Answer = (error: Error | null, result?: { current: number; ttl: number }) => void;

/** What @fastify/rate-limit needs of a store. */
export interface FastifyStore {
  /** Counts one hit of a client. */
  incr(key: string, answer: Answer, timeWindow: number, max: number): void;
  /** The hits of a client, without counting one. */
  read(key: string, answer: Answer, timeWindow: number, max: number): void;
  /** The store of a route that has limits of its own. */
  child(route: object): FastifyStore;
}

/** The part of the options of a route that tells routes apart. */
interface RouteOptions {
  readonly routeInfo?: { readonly method?: unknown; readonly url?: string };
}

/** A class for the option `store` of @fastify/rate-limit. Routes with limits of their own count apart. */
export function fastifyRateLimitStore(options: HitStoreOptions): new () => FastifyStore {
  return class HeadgateStore implements FastifyStore {
    readonly #hits = new HitCounter(options);

    incr(key: string, answer: Answer, timeWindow: number, max: number): void {
      this.#hits.hit(key, max, timeWindow).then(
        ({ total, resetMs }) => answer(null, { current: total, ttl: resetMs }),
        (error: Error) => answer(error),
      );
    }

    read(key: string, answer: Answer, timeWindow: number, max: number): void {
      this.#hits.read(key, max, timeWindow).then(
        ({ total, resetMs }) => answer(null, { current: total, ttl: resetMs }),
        (error: Error) => answer(error),
      );
    }

    child(ofRoute: object): FastifyStore {
      const { routeInfo } = ofRoute as RouteOptions;
      const route = routeInfo === undefined ? '' : `${String(routeInfo.method)}${routeInfo.url ?? ''}|`;
      const Child = fastifyRateLimitStore({ ...options, prefix: `${options.prefix ?? ''}${route}` });
      return new Child();
    }
  };
}
