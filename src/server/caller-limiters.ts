import type { RateLimiter } from '../limiter/rate-limiter.js';
import type { AccessToken } from './access-token.js';

/** Who asks, in which namespace. */
export interface Caller {
  readonly token: AccessToken | null;
  readonly namespace: string;
}

/** The limiters of a server, by namespace and principal. Bounded by the number of tokens and of namespaces that they reach. */
export class CallerLimiters {
  readonly #first: RateLimiter;
  readonly #namespace: string;
  readonly #opened = new Map<string, Promise<RateLimiter>>();

  /** `namespace`: that of the server. */
  constructor(first: RateLimiter, namespace: string) {
    this.#first = first;
    this.#namespace = namespace;
  }

  of(caller: Caller): Promise<RateLimiter> {
    const key = keyOf(caller);
    const known = this.#opened.get(key);
    if (known !== undefined) return known;
    const opened = this.#open(caller);
    // A namespace that is missing now may be registered later.
    opened.catch(() => this.#opened.delete(key));
    this.#opened.set(key, opened);
    return opened;
  }

  /** The name may belong to another namespace by the next request: it was deleted and registered again. */
  forget(caller: Caller): void {
    this.#opened.delete(keyOf(caller));
  }

  /**
   * The namespace of the server or of the token is not looked up first: in an outage its asks follow the policy. Other names
   * are, because a client may send any number of them.
   */
  async #open({ token, namespace }: Caller): Promise<RateLimiter> {
    const isExpected = namespace === this.#namespace || namespace === token?.namespace;
    if (isExpected) return this.#first.inUnopened(namespace, token?.name);
    return this.#first.in(namespace, token === null ? {} : { principal: token.name });
  }
}

/** A header has no line break, so that no other namespace and name have the same key. */
function keyOf({ token, namespace }: Caller): string {
  return `${namespace}\n${token?.name ?? ''}`;
}
