import type { Awaitable } from '../backend.js';
import type { RateLimiter } from '../limiter/rate-limiter.js';
import type { AccessToken } from './access-token.js';

/** Who asks, in which namespace. */
export interface Caller {
  readonly token: AccessToken | null;
  readonly namespace: string;
}

/** The limiters of a server, by principal and namespace. Bounded by the number of tokens and of namespaces that they reach. */
export class CallerLimiters {
  readonly #first: RateLimiter;
  readonly #namespace: string;
  readonly #opened = new Map<AccessToken | null, Map<string, Awaitable<RateLimiter>>>();

  /** `namespace`: that of the server. */
  constructor(first: RateLimiter, namespace: string) {
    this.#first = first;
    this.#namespace = namespace;
  }

  /** A limiter that is open, or a promise of it. Only the first requests of a caller get a promise. */
  of(caller: Caller): Awaitable<RateLimiter> {
    return this.#openedBy(caller).get(caller.namespace) ?? this.#open(caller);
  }

  /** The name may belong to another namespace by the next request: it was deleted and registered again. */
  forget(caller: Caller): void {
    this.#openedBy(caller).delete(caller.namespace);
  }

  /**
   * The namespace of the server or of the token is not looked up first: in an outage its asks follow the policy. Other names
   * are, because a client may send any number of them.
   */
  #open(caller: Caller): Awaitable<RateLimiter> {
    const { token, namespace } = caller;
    const opened = this.#openedBy(caller);
    const isExpected = namespace === this.#namespace || namespace === token?.namespace;
    if (isExpected) {
      const limiter = this.#first.inUnopened(namespace, token?.name);
      opened.set(namespace, limiter);
      return limiter;
    }
    const opening = this.#first.in(namespace, token === null ? {} : { principal: token.name });
    opened.set(namespace, opening);
    const replace = (limiter: RateLimiter | null): void => {
      if (opened.get(namespace) !== opening) return;
      if (limiter === null) opened.delete(namespace);
      else opened.set(namespace, limiter);
    };
    // A namespace that is missing now may be registered later.
    opening.then(replace, () => replace(null));
    return opening;
  }

  #openedBy({ token }: Caller): Map<string, Awaitable<RateLimiter>> {
    const known = this.#opened.get(token);
    if (known !== undefined) return known;
    const opened = new Map<string, Awaitable<RateLimiter>>();
    this.#opened.set(token, opened);
    return opened;
  }
}
