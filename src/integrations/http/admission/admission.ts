import type { LimitStatus } from '../../../core/bucket/decide.js';
import { isHeadgateError, ValidationError } from '../../../core/errors.js';
import { checkKnownFields } from '../../../core/known-fields.js';
import type { Limit } from '../../../core/limit.js';
import { RateLimitExceeded } from '../../../core/rate-limit-exceeded.js';
import type { Denied } from '../../../limiter/acquire/decision.js';
import type { AcquireRequest, Amounts } from '../../../limiter/acquire/request.js';
import { extendWhileOpen, type HttpLease } from '../presence/extend-while-open.js';
import { HEADER_FORMATS, type HeaderFormat, type HeaderLine, rateLimitHeaders } from './headers.js';
import { ipKeyOf } from './ip-key.js';

/** A limiter of the library or a client of `headgate/client`. */
export interface HttpLimiter {
  /** As `RateLimiter.tryAcquire`. */
  tryAcquire(request: HttpAsk): Promise<HttpGrant | Denied>;
}

/** A client does not know `portable: 'held'`: its server always asks so. */
type HttpAsk = Omit<AcquireRequest, 'portable'> & { readonly portable?: boolean };

interface HttpGrant {
  readonly granted: true;
  readonly lease: HttpLease;
  readonly statuses: readonly LimitStatus[];
}

declare const reportError: (error: unknown) => void;

type Maybe<T> = T | Promise<T>;

/** The options that every middleware has. `R`: the framework's own request. */
export interface HttpLimitOptions<R> {
  /** A `RateLimiter`, or a `HeadgateClient`. */
  readonly limiter: HttpLimiter;
  /** The entity that the request counts for. Default: the address of the client, IPv6 grouped by /56. */
  readonly key?: (request: R) => Maybe<string>;
  /** What is limited. Default: `http`. */
  readonly resource?: string | ((request: R) => Maybe<string>);
  /** Limits in code, for this route or by request. Default: the limits that are configured for the entity and the resource. */
  readonly limits?: readonly Limit[] | ((request: R) => Maybe<readonly Limit[]>);
  /** What the request takes. A number is taken from each of `limits`. Default: 1 of each of `limits`, or the configured costs. */
  readonly cost?: number | Amounts | ((request: R) => Maybe<number | Amounts>);
  /** Requests that are not limited. */
  readonly skip?: (request: R) => Maybe<boolean>;
  /** Waits instead of refusing. Default: no wait. */
  readonly wait?: {
    /** How long a request may wait. */
    readonly timeoutMs: number;
    /** How many requests may wait in the same line. Default: any number. */
    readonly maxWaiting?: number;
  };
  /** Gives back what a failed request took: status 400 or more, or no answer. */
  readonly skipFailedRequests?: boolean;
  /** Gives back what a successful request took. */
  readonly skipSuccessfulRequests?: boolean;
  /** Which answers count as successful. Default: a status below 400. */
  readonly isSuccessful?: (status: number) => boolean;
  /** The format of the rate-limit header fields. Default: `draft-10`. */
  readonly headers?: HeaderFormat;
  /** The body of a refusal: a text, or an object as JSON. Default: a problem by RFC 9457. */
  readonly message?: string | object;
  /** What happens while the store does not answer. Default: the policy of the limiter. `block` answers 503. */
  readonly onUnavailable?: 'block' | 'allow' | 'local';
  /** Told of errors that must not fail a request: of a lease that could not be ended. Default: `process.emitWarning`. */
  readonly onError?: (error: unknown) => void;
}

const HTTP_LIMIT_FIELDS = [
  'limiter',
  'key',
  'resource',
  'limits',
  'cost',
  'skip',
  'wait',
  'skipFailedRequests',
  'skipSuccessfulRequests',
  'isSuccessful',
  'headers',
  'message',
  'onUnavailable',
  'onError',
] as const satisfies readonly (keyof HttpLimitOptions<unknown>)[];

/** What an adapter tells about a request. */
export interface HttpCall<R> {
  readonly request: R;
  /**
   * The address of the client, and then those of the proxies before this server, as far as they are known. A proxy may pass
   * on what its client wrote, which need not be an address.
   */
  readonly addresses: () => readonly (string | null | undefined)[];
  readonly signal?: AbortSignal | undefined;
}

export type Admission =
  | { readonly kind: 'skipped' }
  | Admitted
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly headers: readonly HeaderLine[];
      readonly contentType: string;
      readonly body: string;
      /** null: the store did not answer. */
      readonly denial: Denied | null;
    };

export interface Admitted {
  readonly kind: 'admitted';
  readonly headers: readonly HeaderLine[];
  /** Slots or a lifetime are held until `end`. */
  readonly isHeld: boolean;
  /** Ends the lease, once. null: the request ended without an answer. Never rejects. */
  end(status: number | null): Promise<void>;
}

const DEFAULT_RESOURCE = 'http';

export function checkHttpOptions(options: object, more: readonly string[] = []): void {
  if (typeof options !== 'object' || options === null) throw new ValidationError('options', 'an object', options);
  checkKnownFields('options', options, new Set([...HTTP_LIMIT_FIELDS, ...more]));
  const { limiter, headers } = options as Partial<HttpLimitOptions<unknown>>;
  if (typeof limiter?.tryAcquire !== 'function') {
    throw new ValidationError('limiter', 'a RateLimiter or a HeadgateClient', limiter);
  }
  if (headers !== undefined && !HEADER_FORMATS.includes(headers)) {
    throw new ValidationError('headers', `one of ${HEADER_FORMATS.join(', ')}`, headers);
  }
}

/** Decides one request. Rejects only for errors of the program: a key that is no name, or limits that are missing. */
export async function admit<R>(options: HttpLimitOptions<R>, call: HttpCall<R>): Promise<Admission> {
  if (await options.skip?.(call.request)) return { kind: 'skipped' };
  const ask = await askOf(options, call);
  try {
    const decision = await options.limiter.tryAcquire(ask);
    return decision.granted ? admitted(options, decision) : refused(options, decision);
  } catch (error) {
    if (!isHeadgateError(error, 'backend.unavailable')) throw error;
    // A limiter of the library follows the policy itself. The server that a client asks may be out of reach.
    return options.onUnavailable === 'allow' ? { kind: 'skipped' } : unavailable(options);
  }
}

async function askOf<R>(options: HttpLimitOptions<R>, call: HttpCall<R>): Promise<HttpAsk> {
  const { request, signal } = call;
  const { limits: given, resource = DEFAULT_RESOURCE, wait, onUnavailable } = options;
  const limits = typeof given === 'function' ? await given(request) : given;
  const consume = await amountsOf(options, request, limits);
  return {
    entityId: options.key === undefined ? addressKey(call) : await options.key(request),
    resource: typeof resource === 'function' ? await resource(request) : resource,
    consume,
    ...(limits === undefined ? {} : { limits }),
    ...(wait === undefined ? {} : { wait }),
    ...(onUnavailable === undefined ? {} : { onUnavailable }),
    ...(signal === undefined ? {} : { signal }),
    ...(mayGiveBack(options) ? { portable: true } : {}),
  };
}

/** A client can give rates back only by the token of a portable lease. A limiter of the library needs no holder for that. */
function mayGiveBack<R>({ limiter, skipFailedRequests, skipSuccessfulRequests }: HttpLimitOptions<R>): boolean {
  const { isRemote = false } = limiter as { readonly isRemote?: boolean };
  return isRemote && (skipFailedRequests === true || skipSuccessfulRequests === true);
}

/**
 * The key of clients of which no address is known, only a text that is none. They share it: a text of their own would
 * be a key of their own.
 */
const NO_ADDRESS = 'unknown';

function addressKey<R>({ addresses }: HttpCall<R>): string {
  const known = addresses().filter((address) => typeof address === 'string' && address !== '') as readonly string[];
  for (const address of known) {
    const key = ipKeyOf(address);
    if (key !== null) return key;
  }
  if (known.length > 0) return NO_ADDRESS;
  throw new ValidationError(
    'key',
    'a function of the request, because the address of the client is unknown',
    undefined,
  );
}

async function amountsOf<R>(
  { cost: given }: HttpLimitOptions<R>,
  request: R,
  limits: readonly Limit[] | undefined,
): Promise<Amounts> {
  const cost = typeof given === 'function' ? await given(request) : given;
  if (typeof cost === 'object') return cost;
  if (limits === undefined) {
    if (cost === undefined) return {};
    throw new ValidationError('cost', 'amounts by the name of the limit, because no limits are given in code', cost);
  }
  return Object.fromEntries(limits.map(({ name }) => [name, cost ?? 1]));
}

function admitted<R>(options: HttpLimitOptions<R>, { lease, statuses }: HttpGrant): Admitted {
  const { headers: format = 'draft-10', isSuccessful = isBelow400, onError = warn } = options;
  const stopExtending = extendWhileOpen(lease, onError);
  let isEnded = false;
  return {
    kind: 'admitted',
    headers: rateLimitHeaders({ granted: true, statuses, retryAfterMs: null }, { format }),
    isHeld: lease.expiresAt !== null,
    async end(status) {
      if (isEnded) return;
      isEnded = true;
      stopExtending();
      try {
        const succeeded = status !== null && isSuccessful(status);
        const isFree = succeeded ? options.skipSuccessfulRequests === true : options.skipFailedRequests === true;
        await (isFree ? lease.rollback() : lease.commit());
      } catch (error) {
        onError(error);
      }
    },
  };
}

function isBelow400(status: number): boolean {
  return status < 400;
}

/** Edge runtimes have no `process`: they report errors that no promise caught. */
function warn(error: unknown): void {
  if (typeof process === 'undefined') reportError(error);
  else process.emitWarning(error instanceof Error ? error : String(error));
}

const QUOTA_EXCEEDED = 'https://iana.org/assignments/http-problem-types#quota-exceeded';
const REDUCED_CAPACITY = 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity';

/** Names no entity: the limit may be of a parent, of which the client knows nothing. */
function refused<R>({ headers: format = 'draft-10', message }: HttpLimitOptions<R>, denial: Denied): Admission {
  const { httpStatus: status, code } = new RateLimitExceeded(denial);
  const { retryAfterMs, statuses } = denial;
  const problem = {
    type: QUOTA_EXCEEDED,
    title: denial.reason === 'paused' ? 'Paused' : 'Too many requests',
    status,
    code,
    'violated-policies': [...new Set(denial.violations.map(({ limit }) => limit.name))],
    retryAfterMs,
  };
  const headers = rateLimitHeaders({ granted: false, statuses, retryAfterMs }, { format });
  return { kind: 'refused', status, headers, denial, ...bodyOf(message ?? problem, message === undefined) };
}

function unavailable<R>({ message }: HttpLimitOptions<R>): Admission {
  const problem = {
    type: REDUCED_CAPACITY,
    title: 'The limiter does not answer',
    status: 503,
    code: 'backend.unavailable',
  };
  return {
    kind: 'refused',
    status: 503,
    headers: [],
    denial: null,
    ...bodyOf(message ?? problem, message === undefined),
  };
}

function bodyOf(content: string | object, isProblem: boolean): { readonly contentType: string; readonly body: string } {
  if (typeof content === 'string') return { contentType: 'text/plain; charset=utf-8', body: content };
  return { contentType: isProblem ? 'application/problem+json' : 'application/json', body: JSON.stringify(content) };
}
