import { checkWhole } from '../../core/limit.js';
import { Refusal } from '../access/access.js';
import type { AccessToken } from '../access/access-token.js';
import { serverProblem } from '../answer/problem.js';

interface Bounds {
  readonly most: number;
  readonly mostOfToken: number;
  /** What a server with too many of them tells a client. */
  readonly describe: (count: number, isOfToken: boolean) => string;
}

/** Counts calls that stay open, in all and by token, and refuses those beyond a bound. */
export class OpenCalls {
  readonly #bounds: Bounds;
  #count = 0;
  readonly #byToken = new Map<AccessToken, number>();

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  /** Counts a call. Returns the function that ends it, which may be called again without an effect. Throws if there are too many. */
  begin(token: AccessToken | null): () => void {
    const { most, mostOfToken, describe } = this.#bounds;
    if (this.#count >= most) throw tooMany(describe(most, false));
    if (token !== null && (this.#byToken.get(token) ?? 0) >= mostOfToken) throw tooMany(describe(mostOfToken, true));
    this.#change(token, 1);
    let isOpen = true;
    return () => {
      if (isOpen) this.#change(token, -1);
      isOpen = false;
    };
  }

  #change(token: AccessToken | null, more: 1 | -1): void {
    this.#count += more;
    if (token === null) return;
    const count = (this.#byToken.get(token) ?? 0) + more;
    if (count === 0) this.#byToken.delete(token);
    else this.#byToken.set(token, count);
  }
}

function tooMany(what: string): Refusal {
  return new Refusal(serverProblem('server.busy', what));
}

/** Counts the event streams of a server: each event costs time for every one of them. */
export function countEventStreams(maxEventStreams: number): OpenCalls {
  checkWhole('maxEventStreams', maxEventStreams, 0, Number.MAX_SAFE_INTEGER);
  return new OpenCalls({
    most: maxEventStreams,
    mostOfToken: Math.ceil(maxEventStreams / 2),
    describe: (count, isOfToken) =>
      `${count} event streams ${isOfToken ? 'of the token ' : ''}are open at this server: close one, or try later`,
  });
}
