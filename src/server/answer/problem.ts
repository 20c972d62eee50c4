import { type ErrorCode, errorTraits } from '../../core/error-codes.js';
import { type HeadgateError, isHeadgateError, type LimitsNotConfigured, ValidationError } from '../../core/errors.js';
import { RateLimitExceeded } from '../../core/rate-limit-exceeded.js';
import type { Denied } from '../../limiter/acquire/decision.js';
import { viewPausedBy, viewStatus } from './views.js';

/** The codes of refusals that only a server makes. */
export type ServerCode =
  | 'access.missing'
  | 'access.denied'
  | 'route.missing'
  | 'route.method'
  | 'body.too-large'
  | 'server.busy'
  | 'server.error';

/** An answer by RFC 9457: `application/problem+json`. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ErrorCode;
  readonly [member: string]: unknown;
}

const QUOTA_EXCEEDED = 'https://iana.org/assignments/http-problem-types#quota-exceeded';
const REDUCED_CAPACITY = 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity';
const NO_TYPE = 'about:blank';

const FAILED = 'The server failed; its log has the details';

const TITLES: Readonly<Record<number, string>> = {
  400: 'The request is invalid',
  401: 'A token is required',
  403: 'Not allowed',
  404: 'Not found',
  405: 'The path has other methods',
  409: 'The request conflicts with the stored state',
  413: 'The body is too large',
  422: 'The ask is larger than the limit',
  429: 'A limit is exceeded',
  500: 'The server failed',
  503: 'The store does not answer',
};

export function serverProblem(code: ServerCode, detail: string): Problem {
  const { http: status } = errorTraits(code);
  if (code === 'server.busy') return { type: REDUCED_CAPACITY, title: 'The server is busy', status, detail, code };
  return { type: NO_TYPE, title: TITLES[status] ?? 'Error', status, detail, code };
}

/** The answer to a wait that ends with its server. To clients it is an outage of this server, not of the store. */
export function endingProblem(): Problem {
  const detail = 'The server ends; another one may answer';
  const code = 'backend.unavailable';
  return { type: REDUCED_CAPACITY, title: 'The server ends', status: 503, detail, code, retryable: true };
}

/** A denied ask: which limit of which level refused, and the exact wait. */
export function denialProblem(denial: Omit<Denied, 'granted'>): Problem {
  const error = new RateLimitExceeded(denial);
  const { code, message, httpStatus } = error;
  return {
    // A pause without an end is no quota.
    type: code === 'entity.paused' ? NO_TYPE : QUOTA_EXCEEDED,
    title: TITLES[httpStatus] ?? 'A limit is exceeded',
    status: httpStatus,
    detail: message,
    code,
    'violated-policies': denial.violations.map(({ limit }) => limit.name),
    reason: denial.reason,
    retryAfterMs: denial.retryAfterMs,
    violations: denial.violations.map(viewStatus),
    statuses: denial.statuses.map(viewStatus),
    decidedBy: denial.decidedBy,
    ...(denial.paused === undefined ? {} : { paused: viewPausedBy(denial.paused) }),
  };
}

/** The answer to an error of the library. An error that is none of ours is reported, and the client is told nothing of it. */
export function errorProblem(error: unknown): Problem {
  if (error instanceof RateLimitExceeded) return denialProblem(error as Omit<Denied, 'granted'>);
  if (!isHeadgateError(error)) return serverProblem('server.error', FAILED);
  const { code } = error;
  const { http: status, retryable } = errorTraits(code);
  const type = status === 503 ? REDUCED_CAPACITY : NO_TYPE;
  const input =
    error instanceof ValidationError ? { field: cut(error.field), expected: error.expected, got: error.got } : {};
  return { type, title: TITLES[status] ?? 'Error', status, detail: detailOf(error), code, retryable, ...input };
}

/** One sentence in the words of HTTP: the library's own names its calls, and repeats names that a client may make long. */
function detailOf(error: HeadgateError): string {
  if (isHeadgateError(error, 'limits.missing')) {
    const { entityId, resource } = error as LimitsNotConfigured;
    return `No limits for entity ${entityId} on resource ${resource}: an admin stores them with PUT /v1/config or \`headgate resource set\`, or the server starts with \`--limit\``;
  }
  const { message } = error;
  if (isHeadgateError(error, 'namespace.missing')) {
    return message.replace('limiter.namespaces.register creates it', () => REGISTERS);
  }
  return error instanceof ValidationError ? message.replace(error.field, () => cut(error.field)) : message;
}

const REGISTERS = 'an admin registers it with POST /v1/namespaces or `headgate namespace register`';

const LONGEST_ECHO = 200;

/** A text of the client, for an answer that must not become as long as the request. */
export function cut(text: string): string {
  return text.length <= LONGEST_ECHO ? text : `${text.slice(0, LONGEST_ECHO)}… (${text.length} characters)`;
}

/** Whether an operator must act: the store refuses the server, or the server failed. An outage passes, and has an event. */
export function isOperators({ status, code }: Problem): boolean {
  return status >= 500 && code !== 'backend.unavailable';
}

/** The problem for a token of the role `app`: the text of a store that fails may name its address, its account and its table. */
export function withoutStore(problem: Problem): Problem {
  const { status } = problem;
  if (status < 500) return problem;
  return { ...problem, detail: status === 503 ? 'The store does not answer; an admin can see why' : FAILED };
}
