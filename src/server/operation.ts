import type { GenericSchema, InferOutput } from 'valibot';
import type { Awaitable } from '../backend.js';
import type { RateLimiter } from '../limiter/rate-limiter.js';
import type { HeaderFormat, HeaderLine } from '../integrations/http/admission/headers.js';
import type { AccessToken, Role } from './access/access-token.js';
import type { EventHub } from './live/event-hub.js';
import type { FallbackLeases } from './answer/fallback-leases.js';
import type { LimitsFileParser } from './request/limits-file-parser.js';
import type { OpenCalls } from './live/open-calls.js';
import type { Problem } from './answer/problem.js';
import type { GiveBack } from './answer/undelivered.js';
import type { WaitingCalls } from './live/waiting-calls.js';

/** What a handler gets besides its input. */
export interface Asked {
  /** The limiter of the namespace that the request names, with the token's name as principal. */
  readonly limiter: RateLimiter;
  /** null: the server has no tokens and listens on the loopback interface only. */
  readonly token: AccessToken | null;
  /** The namespace of `limiter`. */
  readonly namespace: string;
  /** Its signal aborts when the client disconnects. The signal is made when it is first read, and most asks never read it. */
  readonly request: { readonly signal: AbortSignal };
  /** Aborts when the server ends before a wait does. */
  readonly ending: AbortSignal;
  /** The calls that wait at this server. */
  readonly waiting: WaitingCalls;
  /** The event streams that are open at this server. */
  readonly eventStreams: OpenCalls;
  /** The leases that the outage policy `local` granted. */
  readonly fallbackLeases: FallbackLeases;
  /** The events of this process. */
  readonly events: EventHub;
  /** The format of the rate-limit fields of decisions. */
  readonly headers: HeaderFormat;
  /** Reads a limits file that is sent as text. */
  readonly parseLimitsFile: LimitsFileParser;
  /** The answer to an error of one part of the request. Reports the error if the client did not cause it. */
  readonly problemOf: (error: unknown) => Problem;
}

export interface Answer<T> {
  /** Left out: the operation's status. */
  readonly status?: number;
  readonly body: T;
  readonly headers?: readonly HeaderLine[];
  /** Gives back what the answer hands over. Called if the client disconnected before it could read the answer. */
  readonly ifUndelivered?: GiveBack;
  /** Server-sent events, instead of the body. */
  readonly stream?: ReadableStream<Uint8Array>;
}

/** One route: what it takes, who may call it, what it answers. Routes and the OpenAPI document are built from it. */
export interface Operation {
  readonly id: string;
  readonly group: string;
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** Parameters are in braces: `/v1/entities/{id}`. */
  readonly path: string;
  readonly role: Role;
  /** The operation concerns the whole store: it needs a token for every namespace. */
  readonly wholeStore: boolean;
  readonly summary: string;
  readonly params: GenericSchema | null;
  readonly query: GenericSchema | null;
  readonly body: GenericSchema | null;
  /** The status of success. Default: 200. */
  readonly status: number;
  readonly answer: GenericSchema;
  /** The problem body of the statuses 422 and 429. null: that of every problem. */
  readonly denial: GenericSchema | null;
  /** Error statuses besides those that every operation has. */
  readonly refusals: readonly number[];
  /** The entities that the request names. A token must cover each of them. */
  readonly entitiesOf: (input: Input) => readonly string[];
  /** The fields of the request that replace what an admin has configured. A token with an entity prefix may not send them. */
  readonly overridesOf: (input: Input) => readonly string[];
  readonly handle: (asked: Asked, input: Input) => Awaitable<Answer<unknown>>;
}

/** Parameters of the path and the query, and the body, each as its schema returned it. */
export interface Input {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

type Parsed<S> = S extends GenericSchema ? InferOutput<S> : null;

interface TypedInput<P, Q, B> {
  readonly params: Parsed<P>;
  readonly query: Parsed<Q>;
  readonly body: Parsed<B>;
}

export interface OperationDefinition<
  P extends GenericSchema | null,
  Q extends GenericSchema | null,
  B extends GenericSchema | null,
  A extends GenericSchema,
> {
  readonly id: string;
  readonly group: string;
  readonly method: Operation['method'];
  readonly path: string;
  readonly role: Role;
  readonly wholeStore?: boolean;
  readonly summary: string;
  readonly params?: P;
  /** Strict where leaving a field out widens what the request reads or changes: a misspelt name must not do that. */
  readonly query?: Q;
  readonly body?: B;
  readonly status?: number;
  readonly answer: A;
  readonly denial?: GenericSchema;
  readonly refusals?: readonly number[];
  readonly entitiesOf?: (input: TypedInput<P, Q, B>) => readonly string[];
  readonly overridesOf?: (input: TypedInput<P, Q, B>) => readonly string[];
  readonly handle: (asked: Asked, input: TypedInput<P, Q, B>) => Awaitable<Answer<InferOutput<A>>>;
}

/** Checks the types of a definition: the handler gets what the schemas return, and answers what its schema says. */
export function operation<
  A extends GenericSchema,
  P extends GenericSchema | null = null,
  Q extends GenericSchema | null = null,
  B extends GenericSchema | null = null,
>(definition: OperationDefinition<P, Q, B, A>): Operation {
  const {
    params = null,
    query = null,
    body = null,
    status = 200,
    denial = null,
    refusals = [],
    wholeStore = false,
    entitiesOf = () => [],
    overridesOf = () => [],
    ...rest
  } = definition;
  // The app parses the input with these very schemas before it calls the handler.
  const typed = {
    ...rest,
    params,
    query,
    body,
    status,
    denial,
    refusals,
    wholeStore,
    entitiesOf,
    overridesOf,
  } as unknown;
  return typed as Operation;
}
