import { type ErrorCode, errorTraits } from '../core/error-codes.js';
import { BackendUnavailable, HeadgateError, ValidationError } from '../core/errors.js';

/** Options of `HeadgateClient`. */
export interface ClientOptions {
  /** The secret of a token: `hg_...`. A server without tokens needs none. */
  readonly token?: string;
  /** The tenant. Default: the namespace of the token. */
  readonly namespace?: string;
  /** What sends the requests. Default: the `fetch` of the runtime. */
  readonly fetch?: typeof fetch;
  /** The longest time for one request, without the wait for tokens. Default: 5,000. */
  readonly timeoutMs?: number;
  /** How often a request that may be repeated is sent again when no answer came. Default: 2. */
  readonly retries?: number;
  /** Called with errors of `run` that are not those of its function. Default: `console.warn`. */
  readonly onError?: (error: unknown, where: string) => void;
}

/** The body of an error answer (RFC 9457). */
export interface ProblemBody {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly [member: string]: unknown;
}

/** An error that the server answered. `problem` is the whole body. */
export class RemoteError extends HeadgateError {
  readonly problem: ProblemBody;

  constructor(problem: ProblemBody) {
    super(problem.code as ErrorCode, problem.detail);
    this.problem = problem;
  }

  override get httpStatus(): number {
    return this.problem.status;
  }

  override get retryable(): boolean {
    return this.problem.status === 503 || errorTraits(this.code).retryable;
  }
}

export interface Sending {
  /** The member that every answer to this request has. An answer without it comes from another program. */
  readonly member: 'lease' | 'statuses' | 'available';
  /** Sending it twice has the same effect as sending it once. */
  readonly repeatable: boolean;
  /** Added to the body when it is sent again. */
  readonly ifRepeated?: object;
  readonly signal?: AbortSignal | undefined;
  /** Added to `timeoutMs`: the time for which the server may wait for tokens. */
  readonly waitMs?: number;
}

/** The body of an answer that is a decision or data. */
export interface Answered {
  readonly isDenial: boolean;
  readonly body: unknown;
}

const TIMEOUT_MS = 5_000;
const RETRIES = 2;
const FIRST_PAUSE_MS = 50;

/** Timers end at once if they are longer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Printed instead of a secret. */
const HIDDEN = '(hidden: it may be a secret)';

/** Sends requests to one server. Repeats only what may be repeated. */
export class Sender {
  readonly #base: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #fetch: typeof fetch;
  readonly #timeoutMs: number;
  readonly #retries: number;

  constructor(url: string, { token, namespace, fetch: own, timeoutMs = TIMEOUT_MS, retries = RETRIES }: ClientOptions) {
    checkSecrets(url, token);
    this.#base = url.replace(/\/+$/, '');
    this.#headers = {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(namespace === undefined ? {} : { 'headgate-namespace': namespace }),
    };
    // A bare reference to the global function fails in browsers when it is called as a method.
    this.#fetch = own ?? ((input, init) => fetch(input, init));
    this.#timeoutMs = timeoutMs;
    this.#retries = retries;
  }

  async get(path: string, query: Readonly<Record<string, string>>, member: Sending['member']): Promise<unknown> {
    const { body } = await this.send('GET', `${path}?${new URLSearchParams(query).toString()}`, undefined, {
      repeatable: true,
      member,
    });
    return body;
  }

  async send(method: string, path: string, body: object | undefined, sending: Sending): Promise<Answered> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#once(method, path, attempt > 0 && body ? { ...body, ...sending.ifRepeated } : body, sending);
      } catch (error) {
        sending.signal?.throwIfAborted();
        const isLast = !sending.repeatable || attempt >= this.#retries;
        if (isLast || !(error instanceof HeadgateError) || !error.retryable) throw error;
      }
      await sleep(FIRST_PAUSE_MS * 2 ** attempt * (0.5 + Math.random()));
    }
  }

  async #once(method: string, path: string, body: unknown, sending: Sending): Promise<Answered> {
    const { signal, waitMs = 0, member } = sending;
    const init = {
      method,
      headers: this.#headers,
      // undefined without a body, which `fetch` takes as none.
      body: JSON.stringify(body),
    };
    // The body is part of the answer: the connection may end, or the time may be over, while it arrives.
    const answering = within(this.#timeoutMs + waitMs, signal, (ends) => this.#answer(path, { ...init, signal: ends }));
    const { ok, status, text } = await answering.catch((error: unknown) => {
      signal?.throwIfAborted();
      throw new BackendUnavailable(`${this.#base} did not answer: ${String(error)}`, 'connection', { cause: error });
    });
    const answer = parseObject(text);
    if (ok && hasMember(answer, member)) return { isDenial: false, body: answer };
    if (!ok && isProblem(answer)) {
      if (isDenial(answer)) return { isDenial: true, body: answer };
      throw new RemoteError(answer);
    }
    const expected = ok ? `a JSON object with "${member}"` : 'a problem body';
    throw new BackendUnavailable(`${this.#base} answered ${status} without ${expected}`, 'server');
  }

  async #answer(path: string, init: RequestInit) {
    const response = await this.#fetch(`${this.#base}${path}`, init);
    return { ok: response.ok, status: response.status, text: await response.text() };
  }
}

/** `fetch` would print a header or an address that it cannot send in the text of its error, which programs log. */
function checkSecrets(url: string, token: string | undefined): void {
  if (/\/\/[^/]*@/.test(url)) throw new ValidationError('url', 'a URL without a user and a password', HIDDEN);
  if (token === undefined || /^\s*[!-~]*\s*$/.test(token)) return;
  throw new ValidationError('token', 'the secret of one token, such as hg_..., without spaces and line breaks', HIDDEN);
}

/**
 * Runs `work` with a signal that aborts with the caller's signal, or when the time is over. Not `AbortSignal.any`, which
 * leaves an entry in the caller's signal for every request, nor `AbortSignal.timeout`, whose timer outlives the request.
 */
async function within<T>(
  timeoutMs: number,
  caller: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const ends = new AbortController();
  const abort = (): void => ends.abort(caller?.reason);
  const timer = setTimeout(
    () => ends.abort(new DOMException(`The request took longer than ${timeoutMs} ms`, 'TimeoutError')),
    Math.min(timeoutMs, LONGEST_TIMER_MS),
  );
  caller?.addEventListener('abort', abort);
  if (caller?.aborted === true) abort();
  try {
    return await work(ends.signal);
  } finally {
    clearTimeout(timer);
    caller?.removeEventListener('abort', abort);
  }
}

/** null: the text is not the JSON of an object. */
function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? (value as Record<string, unknown> | null) : null;
  } catch {
    return null;
  }
}

function hasMember(body: Readonly<Record<string, unknown>> | null, name: string): boolean {
  const value = body?.[name];
  return typeof value === 'object' && value !== null;
}

/** A proxy may answer errors of its own, whose `code` means something else. */
function isProblem(body: Readonly<Record<string, unknown>> | null): body is ProblemBody {
  return typeof body?.['code'] === 'string' && typeof body['status'] === 'number' && typeof body['detail'] === 'string';
}

/** A denied ask is an answer, not an error. */
function isDenial({ violations }: ProblemBody): boolean {
  return Array.isArray(violations);
}

async function sleep(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
