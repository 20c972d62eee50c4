import { ValidationError } from '../core/errors.js';
import { checkWhole } from '../core/limit.js';
import { Refusal } from './access.js';
import type { AccessToken } from './access-token.js';
import { serverProblem } from './problem.js';

/** How many calls of a server may wait for their limits, and for how long. */
export interface WaitingBounds {
  /** The calls that may wait at the same time. Further ones are answered 503, with the code `server.busy`. Default: 10 000. */
  readonly maxWaiting?: number;
  /** The same for each token, so that one of them cannot keep the others out. Default: half of `maxWaiting`. */
  readonly maxWaitingPerToken?: number;
  /**
   * The longest `wait.timeoutMs` of an ask; a longer one is bad input. Default: 290 000, because `fetch` of Node gives
   * up a request after 300 seconds without an answer, whatever its timeout is.
   */
  readonly maxWaitMs?: number;
}

const MAX_WAITING = 10_000;
const MAX_WAIT_MS = 290_000;
const DAY_MS = 86_400_000;

/** Counts the calls that wait. Each keeps a connection and memory, and a client can send any number of them. */
export class WaitingCalls {
  readonly #most: number;
  readonly #mostOfToken: number;
  readonly #longestMs: number;
  #count = 0;
  readonly #byToken = new Map<AccessToken, number>();

  constructor(bounds: WaitingBounds) {
    const { maxWaiting = MAX_WAITING, maxWaitMs = MAX_WAIT_MS } = bounds;
    const { maxWaitingPerToken = Math.ceil(maxWaiting / 2) } = bounds;
    checkWhole('maxWaiting', maxWaiting, 0, Number.MAX_SAFE_INTEGER);
    checkWhole('maxWaitingPerToken', maxWaitingPerToken, 0, Number.MAX_SAFE_INTEGER);
    checkWhole('maxWaitMs', maxWaitMs, 0, DAY_MS);
    this.#most = maxWaiting;
    this.#mostOfToken = maxWaitingPerToken;
    this.#longestMs = maxWaitMs;
  }

  /** Runs a call that may wait. Throws if too many do, or if it may wait for too long. */
  async run<T>(token: AccessToken | null, timeoutMs: number, work: () => Promise<T>): Promise<T> {
    if (timeoutMs > this.#longestMs) {
      throw new ValidationError('wait.timeoutMs', `at most ${this.#longestMs} at this server`, timeoutMs);
    }
    this.#begin(token);
    try {
      return await work();
    } finally {
      this.#count -= 1;
      if (token !== null) this.#ofToken(token, -1);
    }
  }

  #begin(token: AccessToken | null): void {
    if (this.#count >= this.#most) throw tooMany(`${this.#most} calls wait at this server`);
    if (token !== null && (this.#byToken.get(token) ?? 0) >= this.#mostOfToken) {
      throw tooMany(`${this.#mostOfToken} calls of the token wait at this server`);
    }
    this.#count += 1;
    if (token !== null) this.#ofToken(token, 1);
  }

  #ofToken(token: AccessToken, more: 1 | -1): void {
    const count = (this.#byToken.get(token) ?? 0) + more;
    if (count === 0) this.#byToken.delete(token);
    else this.#byToken.set(token, count);
  }
}

function tooMany(what: string): Refusal {
  return new Refusal(serverProblem('server.busy', `${what}: ask without \`wait\`, or later`));
}
