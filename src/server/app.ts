import { Hono } from 'hono';
import type { Context as HonoContext, HonoRequest } from 'hono';
import { setMaxListeners } from 'node:events';
import { isHeadgateError } from '../core/errors.js';
import type { HeaderFormat } from '../integrations/http/admission/headers.js';
import { isPromise } from '../limiter/outage/guard.js';
import type { RateLimiter } from '../limiter/rate-limiter.js';
import { Refusal, refuseOtherEntity, refuseOverrides } from './access/access.js';
import { type AccessToken, AccessTokens, coversNamespace, EVERY_NAMESPACE } from './access/access-token.js';
import { noteCaller } from './answer/access-log.js';
import { allowedMethods } from './request/allowed-methods.js';
import type { EventHub } from './live/event-hub.js';
import { FallbackLeases } from './answer/fallback-leases.js';
import type { LimitsFileParser } from './request/limits-file-parser.js';
import type { Answer, Asked, Input, Operation } from './operation.js';
import type { OpenCalls } from './live/open-calls.js';
import { parse } from './request/parse.js';
import {
  cut,
  endingProblem,
  errorProblem,
  isOperators,
  type Problem,
  serverProblem,
  withoutStore,
} from './answer/problem.js';
import { parseJson, readText, TooLarge } from './request/read-body.js';
import { type Caller, CallerLimiters } from './access/caller-limiters.js';
import { respond } from './answer/respond.js';
import { setGiveBack } from './answer/undelivered.js';
import type { WaitingCalls } from './live/waiting-calls.js';

export interface AppOptions {
  /** Left out or empty: every request is allowed. `serve` then listens on the loopback interface only. */
  readonly tokens?: readonly AccessToken[];
  /** The namespace of requests that name none, for tokens that reach every namespace. */
  readonly namespace: string;
  readonly events: EventHub;
  /** The format of the rate-limit fields of decisions. */
  readonly headers: HeaderFormat;
  /** Reads a limits file that is sent as text. */
  readonly parseLimitsFile: LimitsFileParser;
  /** Called with errors that are not the client's. */
  readonly onError: (error: unknown, where: string) => void;
  readonly waiting: WaitingCalls;
  readonly eventStreams: OpenCalls;
  /** Whether the access log needs to know who called. */
  readonly isLogged: boolean;
}

const MAX_BODY_BYTES = { app: 64 * 1024, admin: 1024 * 1024 } as const;

/** What a token must allow. */
type Guarded = Pick<Operation, 'id' | 'role' | 'wholeStore'>;

/** Answers requests for the operations of the table. It opens no socket. */
export class App {
  readonly #options: AppOptions;
  readonly #tokens: AccessTokens;
  readonly #hono = new Hono();
  readonly #ending = new AbortController();
  readonly #limiters: CallerLimiters;
  readonly #fallbackLeases: FallbackLeases;

  constructor(limiter: RateLimiter, operations: readonly Operation[], options: AppOptions) {
    this.#limiters = new CallerLimiters(limiter, options.namespace);
    this.#fallbackLeases = new FallbackLeases(limiter.leases);
    this.#options = options;
    // Each request that waits listens.
    setMaxListeners(0, this.#ending.signal);
    this.#tokens = new AccessTokens(options.tokens ?? []);
    for (const one of operations) {
      this.#hono.on(one.method.toUpperCase(), one.path.replaceAll(/\{(\w+)\}/g, ':$1'), (context) =>
        this.#answer(one, context),
      );
    }
    this.#hono.notFound(({ req }) => respondNoRoute(this.#hono, req.method, req.path));
  }

  /** Answers the requests that wait for tokens with 503, because the server ends. */
  endWaits(): void {
    this.#ending.abort(new Refusal(endingProblem()));
  }

  /** The router, for routes that are not operations. */
  get router(): Hono {
    return this.#hono;
  }

  /** The answer to a request whose token does not allow it, for routes that are not operations. null: it is allowed. */
  refuse(request: Request, guarded: Guarded): Response | null {
    try {
      this.#identify(request, guarded);
      return null;
    } catch (error) {
      if (error instanceof Refusal) return respond(error.problem);
      throw error;
    }
  }

  fetch(request: Request): Promise<Response> {
    return Promise.resolve(this.#hono.fetch(request));
  }

  /** Awaits only what is not there yet, so that a store in memory answers in the turn in which the body is complete. */
  async #answer(one: Operation, { req }: HonoContext): Promise<Response> {
    let caller: Caller | null = null;
    let response: Response;
    try {
      caller = this.#identify(req.raw, one);
      const text = one.body === null ? null : await readText(req.raw, MAX_BODY_BYTES[one.role]);
      const input = readInput(one, req, text);
      if (caller.token !== null) checkReach(one, caller.token, input);
      const limiter = this.#limiters.of(caller);
      const asked = this.#askedOf(one, req.raw, caller, isPromise(limiter) ? await limiter : limiter);
      const answer = one.handle(asked, input);
      const responded = respondWith(one, isPromise(answer) ? await answer : answer, req.method);
      response = isPromise(responded) ? await responded : responded;
    } catch (error) {
      response = respond(this.#problemOf(error, one, caller, req.raw.signal));
    }
    if (this.#options.isLogged) {
      const { token = null, namespace = null } = caller ?? {};
      noteCaller(req.raw, { operation: one.id, token: token?.name ?? null, namespace });
    }
    return response;
  }

  #askedOf(one: Operation, request: Request, caller: Caller, limiter: RateLimiter): Asked {
    const { events, headers, parseLimitsFile, waiting, eventStreams } = this.#options;
    return {
      limiter,
      token: caller.token,
      namespace: caller.namespace,
      request,
      ending: this.#ending.signal,
      waiting,
      eventStreams,
      fallbackLeases: this.#fallbackLeases,
      events,
      headers,
      parseLimitsFile,
      problemOf: (error) => this.#problemOf(error, one, caller, request.signal),
    };
  }

  /** The caller and the namespace of a request. Throws unless the token allows the operation there. */
  #identify(request: Request, one: Guarded): Caller {
    const asked = request.headers.get('headgate-namespace');
    if (this.#tokens.size === 0) return { token: null, namespace: asked ?? this.#options.namespace };
    const [, secret] = /^Bearer +(\S+)$/i.exec(request.headers.get('authorization') ?? '') ?? [];
    const token = secret === undefined ? null : this.#tokens.find(secret);
    if (token === null) {
      throw new Refusal(serverProblem('access.missing', 'Send a valid token: Authorization: Bearer hg_...'));
    }
    if (one.role === 'admin' && token.role !== 'admin') {
      throw new Refusal(serverProblem('access.denied', `${one.id} needs a token of the role admin`));
    }
    if (one.wholeStore && token.namespace !== EVERY_NAMESPACE) {
      throw new Refusal(serverProblem('access.denied', `${one.id} needs a token for every namespace`));
    }
    const own = token.namespace === EVERY_NAMESPACE ? this.#options.namespace : token.namespace;
    const namespace = asked ?? own;
    if (!coversNamespace(token, namespace)) {
      throw new Refusal(serverProblem('access.denied', 'The token is for another namespace'));
    }
    return { token, namespace };
  }

  #problemOf(error: unknown, one: Operation, caller: Caller | null, signal: AbortSignal): Problem {
    if (error instanceof Refusal) return error.problem;
    if (error instanceof TooLarge) return serverProblem('body.too-large', error.message);
    if (caller !== null && isHeadgateError(error, 'namespace.missing')) this.#limiters.forget(caller);
    const problem = errorProblem(error);
    // The client has disconnected, which ends its wait. No client reads the answer, and the server has not failed.
    if (isOperators(problem) && !signal.aborted) this.#options.onError(error, one.id);
    return caller?.token?.role === 'app' ? withoutStore(problem) : problem;
  }
}

function respondNoRoute(hono: Hono, method: string, path: string): Response {
  const shown = `${method} ${cut(path)}`;
  const allowed = allowedMethods(hono, path);
  // A file of the dashboard that does not exist has a route, which answers nothing.
  if (allowed.length === 0 || allowed.includes(method)) {
    return respond(serverProblem('route.missing', `There is no route ${shown}; /docs lists them`));
  }
  const list = allowed.join(', ');
  const problem = serverProblem('route.method', `There is no ${shown}: this path has ${list}`);
  return respond(problem, problem.status, [['allow', list]]);
}

function readInput({ params, query, body }: Operation, req: HonoRequest, text: string | null): Input {
  return {
    params: params === null ? null : parse('path', params, req.param()),
    query: query === null ? null : parse('query', query, req.query()),
    body: body === null || text === null ? null : parse('body', body, parseJson('body', text)),
  };
}

/** Throws unless the token covers what the request names and replaces. */
function checkReach(one: Operation, token: AccessToken, input: Input): void {
  for (const entityId of one.entitiesOf(input)) refuseOtherEntity(token, entityId);
  refuseOverrides(token, one.overridesOf(input));
}

function respondWith(one: Operation, answer: Answer<unknown>, method: string): Response | Promise<Response> {
  const { status = one.status, body, headers = [], ifUndelivered, stream } = answer;
  if (stream !== undefined) return respondWithEvents(stream, method);
  const response = respond(body, status, headers);
  return ifUndelivered === undefined ? response : setGiveBack(response, ifUndelivered);
}

async function respondWithEvents(stream: ReadableStream<Uint8Array>, method: string): Promise<Response> {
  if (method !== 'HEAD') return new Response(stream, { headers: EVENT_STREAM });
  // The answer to HEAD has no body: a stream that is not read would stay subscribed.
  await stream.cancel();
  return new Response(null, { headers: EVENT_STREAM });
}

/** `no-transform` and the hint for nginx: a proxy must not hold events back. */
const EVENT_STREAM = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
};
