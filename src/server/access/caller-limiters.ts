import type { Awaitable } from '../../backend.js';
import type { RateLimiter } from '../../limiter/rate-limiter.js';
import type { AccessToken } from './access-token.js';

/** Who asks, in which namespace. */
export interface Caller {
  readonly token: AccessToken | null;
  readonly namespace: string;
}

interface Opened {
  readonly caller: Caller;
  limiter: Awaitable<RateLimiter>;
  /** Since an eviction came by. */
  isUsed: boolean;
}

/** How many limiters there are for namespaces that clients chose. */
const MAX_CHOSEN = 10_000;

/**
 * The limiters of a server, by principal and namespace: one for each token in its own namespace, and a bounded number for
 * the namespaces that clients chose.
 */
export class CallerLimiters {
  readonly #first: RateLimiter;
  readonly #namespace: string;
  readonly #maxChosen: number;
  readonly #opened = new Map<AccessToken | null, Map<string, Opened>>();
  /** Those of namespaces that clients chose. An eviction begins with the first one. */
  readonly #chosen = new Set<Opened>();

  /** `namespace`: that of the server. */
  constructor(first: RateLimiter, namespace: string, maxChosen: number = MAX_CHOSEN) {
    this.#first = first;
    this.#namespace = namespace;
    this.#maxChosen = maxChosen;
  }

  /** A limiter that is open, or a promise of it. Only the first requests of a caller get a promise. */
  of(caller: Caller): Awaitable<RateLimiter> {
    const opened = this.#openedBy(caller).get(caller.namespace);
    if (opened === undefined) return this.#open(caller);
    opened.isUsed = true;
    return opened.limiter;
  }

  /** The name may belong to another namespace by the next request: it was deleted and registered again. */
  forget(caller: Caller): void {
    const opened = this.#openedBy(caller).get(caller.namespace);
    if (opened !== undefined) this.#drop(opened);
  }

  /**
   * The namespace of the server or of the token is not looked up first: in an outage its asks follow the policy. Other names
   * are, because a client may send any number of them.
   */
  #open(caller: Caller): Awaitable<RateLimiter> {
    const { token, namespace } = caller;
    if (namespace === this.#namespace || namespace === token?.namespace) {
      return this.#keep(caller, this.#first.inUnopened(namespace, token?.name)).limiter;
    }
    const opening = this.#first.in(namespace, token === null ? {} : { principal: token.name });
    const opened = this.#keep(caller, opening);
    this.#chosen.add(opened);
    if (this.#chosen.size > this.#maxChosen) this.#evict();
    opening.then(
      (limiter) => (opened.limiter = limiter),
      // A namespace that is missing now may be registered later.
      () => this.#drop(opened),
    );
    return opening;
  }

  #keep(caller: Caller, limiter: Awaitable<RateLimiter>): Opened {
    const opened = { caller, limiter, isUsed: true };
    this.#openedBy(caller).set(caller.namespace, opened);
    return opened;
  }

  /** Drops the oldest one that was not used since the last eviction came by. Requests may still use it, so it is not closed. */
  #evict(): void {
    for (const opened of this.#chosen) {
      this.#chosen.delete(opened);
      if (!opened.isUsed) return this.#drop(opened);
      opened.isUsed = false;
      this.#chosen.add(opened);
    }
  }

  #drop(opened: Opened): void {
    const { caller } = opened;
    const known = this.#openedBy(caller);
    if (known.get(caller.namespace) === opened) known.delete(caller.namespace);
    this.#chosen.delete(opened);
  }

  #openedBy({ token }: Caller): Map<string, Opened> {
    const known = this.#opened.get(token);
    if (known !== undefined) return known;
    const opened = new Map<string, Opened>();
    this.#opened.set(token, opened);
    return opened;
  }
}
