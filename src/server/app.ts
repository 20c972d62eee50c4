import { Hono } from 'hono';
import type { Context as HonoContext } from 'hono';
import { isHeadgateError, ValidationError } from '../core/errors.js';
import type { RateLimiter } from '../limiter/rate-limiter.js';
import { Refusal, refuseOtherEntity } from './access.js';
import { type AccessToken, AccessTokens, coversNamespace, EVERY_NAMESPACE } from './access-token.js';
import type { EventHub } from './event-hub.js';
import type { Asked, Input, Operation } from './operation.js';
import { parse } from './parse.js';
import { errorProblem, type Problem, serverProblem } from './problem.js';
import { readBody, TooLarge } from './read-body.js';
import { respond } from './respond.js';

export interface AppOptions {
  /** Left out or empty: every request is allowed. `serve` then listens on the loopback interface only. */
  readonly tokens?: readonly AccessToken[];
  /** The namespace of requests that name none, for tokens that reach every namespace. */
  readonly namespace: string;
  readonly events: EventHub;
  /** Called with errors that are not the client's. */
  readonly onError: (error: unknown, where: string) => void;
  /** Called after every answer. Default: no log. */
  readonly onAccess?: (entry: AccessEntry) => void;
}

/** One line of the access log. It has no secret and no body. */
export interface AccessEntry {
  readonly operation: string;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  /** The name of the token; null without one. */
  readonly token: string | null;
  readonly namespace: string | null;
  readonly durationMs: number;
}

const MAX_BODY_BYTES = { app: 64 * 1024, admin: 1024 * 1024 } as const;

/** Who asks, in which namespace. */
interface Caller {
  readonly token: AccessToken | null;
  readonly namespace: string;
}

/** Answers requests for the operations of the table. It opens no socket. */
export class App {
  readonly #limiter: RateLimiter;
  readonly #options: AppOptions;
  readonly #tokens: AccessTokens;
  readonly #hono = new Hono();
  /** By namespace and principal. Bounded by the number of tokens and of namespaces that they reach. */
  readonly #limiters = new Map<string, Promise<RateLimiter>>();

  constructor(limiter: RateLimiter, operations: readonly Operation[], options: AppOptions) {
    this.#limiter = limiter;
    this.#options = options;
    this.#tokens = new AccessTokens(options.tokens ?? []);
    for (const one of operations) {
      this.#hono.on(one.method.toUpperCase(), one.path.replaceAll(/\{(\w+)\}/g, ':$1'), (context) =>
        this.#answer(one, context),
      );
    }
    this.#hono.notFound(({ req }) =>
      respond(serverProblem('route.missing', `There is no route ${req.method} ${req.path}; /docs lists them`)),
    );
  }

  /** The router, for routes that are not operations. */
  get router(): Hono {
    return this.#hono;
  }

  fetch(request: Request): Promise<Response> {
    return Promise.resolve(this.#hono.fetch(request));
  }

  async #answer(one: Operation, context: HonoContext): Promise<Response> {
    const { onAccess } = this.#options;
    const startMs = onAccess === undefined ? 0 : performance.now();
    const { req } = context;
    let caller: Caller | null = null;
    let response: Response;
    try {
      caller = this.#identify(req.raw, one);
      response = await this.#perform(one, context, caller);
    } catch (error) {
      response = respond(this.#problemOf(error, one, caller, req.raw.signal));
    }
    onAccess?.({
      operation: one.id,
      method: req.method,
      path: req.path,
      status: response.status,
      token: caller?.token?.name ?? null,
      namespace: caller?.namespace ?? null,
      durationMs: performance.now() - startMs,
    });
    return response;
  }

  async #perform(one: Operation, context: HonoContext, caller: Caller): Promise<Response> {
    const { raw } = context.req;
    const input: Input = {
      params: one.params === null ? null : parse('path', one.params, context.req.param()),
      query: one.query === null ? null : parse('query', one.query, context.req.query()),
      body: one.body === null ? null : parse('body', one.body, await readJson(raw, MAX_BODY_BYTES[one.role])),
    };
    for (const entityId of one.entitiesOf(input)) refuseOtherEntity(caller.token, entityId);
    const limiter = await this.#limiterFor(caller);
    const { signal } = raw;
    const asked: Asked = {
      limiter,
      token: caller.token,
      namespace: caller.namespace,
      signal,
      events: this.#options.events,
      problemOf: (error) => this.#problemOf(error, one, caller, signal),
    };
    const { status = one.status, body, headers = [], stream } = await one.handle(asked, input);
    if (stream !== undefined) {
      if (raw.method !== 'HEAD') return new Response(stream, { headers: EVENT_STREAM });
      // The answer to HEAD has no body: a stream that is not read would stay subscribed.
      await stream.cancel();
      return new Response(null, { headers: EVENT_STREAM });
    }
    return respond(body, status, headers);
  }

  /** The caller and the namespace of a request. Throws unless the token allows the operation there. */
  #identify(request: Request, one: Operation): Caller {
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

  #limiterFor(caller: Caller): Promise<RateLimiter> {
    const key = keyOf(caller);
    const known = this.#limiters.get(key);
    if (known !== undefined) return known;
    const opened = this.#open(caller);
    // A namespace that is missing now may be registered later.
    opened.catch(() => this.#limiters.delete(key));
    this.#limiters.set(key, opened);
    return opened;
  }

  /**
   * The namespace of the server or of the token is not looked up first: in an outage its asks follow the policy. Other names
   * are, because a client may send any number of them.
   */
  async #open({ token, namespace }: Caller): Promise<RateLimiter> {
    const isExpected = namespace === this.#options.namespace || namespace === token?.namespace;
    if (isExpected) return this.#limiter.inUnopened(namespace, token?.name);
    return this.#limiter.in(namespace, token === null ? {} : { principal: token.name });
  }

  #problemOf(error: unknown, one: Operation, caller: Caller | null, signal: AbortSignal): Problem {
    if (error instanceof Refusal) return error.problem;
    if (error instanceof TooLarge) return serverProblem('body.too-large', error.message);
    // The name may belong to another namespace by the next request: it was deleted and registered again.
    if (caller !== null && isHeadgateError(error, 'namespace.missing')) this.#limiters.delete(keyOf(caller));
    // The client has disconnected, which ends its wait. No client reads the answer, and the server has not failed.
    if (!isHeadgateError(error) && !signal.aborted) this.#options.onError(error, one.id);
    return errorProblem(error);
  }
}

/** A header has no line break, so that no other namespace and name have the same key. */
function keyOf({ token, namespace }: Caller): string {
  return `${namespace}\n${token?.name ?? ''}`;
}

async function readJson(request: Request, maxBytes: number): Promise<unknown> {
  const text = await readBody(request, maxBytes);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new ValidationError('body', 'JSON', text);
  }
}

/** `no-transform` and the hint for nginx: a proxy must not hold events back. */
const EVENT_STREAM = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
};
