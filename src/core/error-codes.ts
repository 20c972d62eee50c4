/** What a code means for servers, for the command line and for retries. */
export interface ErrorTraits {
  /** The HTTP status that a server answers with. */
  readonly http: number;
  /** The exit code of the CLI. */
  readonly exit: number;
  /** Whether the same call can succeed later. */
  readonly retryable: boolean;
}

/** One row for every code that an error of Headgate can have. */
export const ERRORS = {
  'limit.exceeded': { http: 429, exit: 10, retryable: true },
  'limit.impossible': { http: 422, exit: 11, retryable: false },
  'entity.paused': { http: 403, exit: 12, retryable: false },
  'input.invalid': { http: 400, exit: 3, retryable: false },
  'limits.missing': { http: 409, exit: 4, retryable: false },
  'lease.closed': { http: 409, exit: 5, retryable: false },
  'lease.token-invalid': { http: 400, exit: 3, retryable: false },
  'entity.missing': { http: 404, exit: 4, retryable: false },
  'entity.exists': { http: 409, exit: 5, retryable: false },
  'entity.conflict': { http: 409, exit: 5, retryable: true },
  'namespace.missing': { http: 404, exit: 4, retryable: false },
  'namespace.conflict': { http: 409, exit: 5, retryable: false },
  'schema.mismatch': { http: 503, exit: 6, retryable: false },
  'backend.unavailable': { http: 503, exit: 7, retryable: true },
  'backend.denied': { http: 500, exit: 8, retryable: false },
  'access.missing': { http: 401, exit: 8, retryable: false },
  'access.denied': { http: 403, exit: 8, retryable: false },
  'route.missing': { http: 404, exit: 4, retryable: false },
  'route.method': { http: 405, exit: 3, retryable: false },
  'body.too-large': { http: 413, exit: 3, retryable: false },
  'server.busy': { http: 503, exit: 7, retryable: true },
  'server.error': { http: 500, exit: 1, retryable: false },
} as const satisfies Record<string, ErrorTraits>;

/** The codes of errors. They are stable; messages are not. */
export type ErrorCode = keyof typeof ERRORS | `infrastructure.${string}`;

const INFRASTRUCTURE: ErrorTraits = { http: 500, exit: 9, retryable: false };

/** HTTP status, exit code and advice for a code. */
export function errorTraits(code: ErrorCode): ErrorTraits {
  return (ERRORS as Record<string, ErrorTraits>)[code] ?? INFRASTRUCTURE;
}
