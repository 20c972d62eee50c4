/**
 * Why a call has no complete answer.
 * `refused`: the provider answered with a status of 400 to 499. `failed`: with 500 or more. `timed-out`: with a status
 * that means a timeout. `unreachable`: it was not sent. `aborted`: by the caller, after it was sent. `lost`: the
 * connection failed.
 */
export type FailureKind = 'refused' | 'failed' | 'timed-out' | 'unreachable' | 'aborted' | 'lost';

/** How a call of a model failed. */
export interface CallFailure {
  readonly kind: FailureKind;
  /** The HTTP status; null: there was no answer. */
  readonly status: number | null;
}

/**
 * `rollback`: the call costs nothing. `commit`: it keeps its estimate, or more if more was seen. `bound`: it costs the most
 * that the provider can have counted.
 */
export type OnFailure = (failure: CallFailure) => 'rollback' | 'commit' | 'bound';

/**
 * A call that the provider refused or never got costs nothing. Of any other it may have counted all tokens that the
 * request allows.
 */
export const costsByKind: OnFailure = ({ kind }) => {
  switch (kind) {
    case 'refused':
    case 'failed':
    case 'unreachable':
      return 'rollback';
    case 'timed-out':
    case 'aborted':
    case 'lost':
      return 'bound';
  }
};

const TIMEOUTS: ReadonlySet<number> = new Set([408, 504, 524]);

export function failureOfStatus(status: number): CallFailure {
  if (TIMEOUTS.has(status)) return { kind: 'timed-out', status };
  return { kind: status < 500 ? 'refused' : 'failed', status };
}

/** What an error, or one of its causes, says of itself. */
interface Sign {
  readonly name: unknown;
  readonly code: unknown;
  readonly syscall: unknown;
  readonly message: unknown;
}

const UNSENT_CODES: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EPROTO',
  'ERR_INVALID_CHAR',
  'ERR_INVALID_PROTOCOL',
  'ERR_INVALID_URL',
  'ERR_UNESCAPED_CHARACTERS',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_INVALID_ARG',
]);

/** Failed look-ups of a host. Certificates that are refused, by the names of OpenSSL. */
const UNSENT_FAMILIES =
  /^(?:EAI_|ERR_TLS_|CERT_|CRL_|ERROR_IN_C|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_(?:CA|PURPOSE)$|PATH_LENGTH_|HOSTNAME_)/;
/**
 * Failed handshakes. Other errors of OpenSSL, such as a bad record, may come after the request. Alerts have `SSLV3_ALERT_` in their
 * names on Node 20, and `SSL/TLS_ALERT_` since Node 22.
 */
const HANDSHAKE =
  /^ERR_SSL_[\w/]*(?:VERSION|UNSUPPORTED_PROTOCOL|APPLICATION_PROTOCOL|HANDSHAKE|CERTIFICATE|UNKNOWN_CA|UNRECOGNIZED_NAME|CIPHER|INSUFFICIENT_SECURITY|KEY_TOO_SMALL|HTTP_REQUEST|PACKET_LENGTH)/;

const CONNECTING: ReadonlySet<unknown> = new Set(['connect', 'getaddrinfo']);

/** The AI SDK refuses these calls itself. */
const UNSENT_NAMES: ReadonlySet<unknown> = new Set([
  'AI_InvalidArgumentError',
  'AI_InvalidPromptError',
  'AI_LoadAPIKeyError',
  'AI_LoadSettingError',
  'AI_NoSuchModelError',
  'AI_UnsupportedFunctionalityError',
]);

/** `fetch` has no codes for a request that it refuses itself, such as one whose API key has a line break. */
const UNSENT_MESSAGES =
  /is an invalid header (?:value|name)|\bByteString\b|method cannot have body|^unknown scheme$|^bad port$|before secure TLS connection/;

function isUnsent({ name, code, syscall, message }: Sign): boolean {
  if (UNSENT_NAMES.has(name) || CONNECTING.has(syscall) || UNSENT_CODES.has(code)) return true;
  if (typeof code === 'string' && (UNSENT_FAMILIES.test(code) || HANDSHAKE.test(code))) return true;
  return typeof message === 'string' && UNSENT_MESSAGES.test(message);
}

export function failureOfError(error: unknown, signal: AbortSignal | null): CallFailure {
  const status = statusIn(error);
  if (status !== null) return failureOfStatus(status);
  if (signal?.aborted === true) return { kind: 'aborted', status: null };
  return { kind: signsIn(error).some(isUnsent) ? 'unreachable' : 'lost', status: null };
}

/** The status that errors of the AI SDK have. */
function statusIn(error: unknown): number | null {
  const status = (error as { readonly statusCode?: unknown } | null)?.statusCode;
  return typeof status === 'number' && status >= 400 && status < 600 ? status : null;
}

const MAX_CAUSES = 8;

/** The signs of an error and its causes: `fetch` wraps the error of the socket, and that may be one of several addresses. */
function signsIn(error: unknown): readonly Sign[] {
  const signs: Sign[] = [];
  let causes: readonly unknown[] = [error];
  for (let depth = 0; depth < MAX_CAUSES && causes.length > 0; depth++) {
    const next: unknown[] = [];
    for (const cause of causes) {
      if (typeof cause !== 'object' || cause === null) continue;
      signs.push(cause as Sign);
      const { cause: inner, errors } = cause as { cause?: unknown; errors?: unknown };
      next.push(inner, ...(Array.isArray(errors) ? (errors as unknown[]) : []));
    }
    causes = next;
  }
  return signs;
}
