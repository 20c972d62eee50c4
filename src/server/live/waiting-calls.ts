import { ValidationError } from '../../core/errors.js';
import { checkWhole } from '../../core/limit.js';
import type { AccessToken } from '../access/access-token.js';
import { OpenCalls } from './open-calls.js';

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
  readonly #open: OpenCalls;
  readonly #longestMs: number;

  constructor(bounds: WaitingBounds) {
    const { maxWaiting = MAX_WAITING, maxWaitMs = MAX_WAIT_MS } = bounds;
    const { maxWaitingPerToken = Math.ceil(maxWaiting / 2) } = bounds;
    checkWhole('maxWaiting', maxWaiting, 0, Number.MAX_SAFE_INTEGER);
    checkWhole('maxWaitingPerToken', maxWaitingPerToken, 0, Number.MAX_SAFE_INTEGER);
    checkWhole('maxWaitMs', maxWaitMs, 0, DAY_MS);
    this.#open = new OpenCalls({
      most: maxWaiting,
      mostOfToken: maxWaitingPerToken,
      describe: (count, isOfToken) =>
        `${count} calls ${isOfToken ? 'of the token ' : ''}wait at this server: ask without \`wait\`, or later`,
    });
    this.#longestMs = maxWaitMs;
  }

  /** Runs a call that may wait. Throws if too many do, or if it may wait for too long. */
  async run<T>(token: AccessToken | null, timeoutMs: number, work: () => Promise<T>): Promise<T> {
    if (timeoutMs > this.#longestMs) {
      throw new ValidationError('wait.timeoutMs', `at most ${this.#longestMs} at this server`, timeoutMs);
    }
    const end = this.#open.begin(token);
    try {
      return await work();
    } finally {
      end();
    }
  }
}
