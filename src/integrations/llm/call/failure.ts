/**
 * Why a call has no complete answer.
 * `refused`: the provider answered with a status of 400 to 499. `failed`: with 500 or more. `timed-out`: with a status that
 * means a timeout. `unreachable`: it was not sent. `aborted`: by the caller, after it was sent. `lost`: the connection failed.
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

/** A call that the provider refused or never got costs nothing. Of any other it may have counted all tokens that the request allows. */
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

/** Codes of errors that occur before a request is sent. */
const UNSENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ERR_INVALID_URL',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

export function failureOfError(error: unknown, signal: AbortSignal | null): CallFailure {
  const status = statusIn(error);
  if (status !== null) return failureOfStatus(status);
  if (signal?.aborted === true) return { kind: 'aborted', status: null };
  return { kind: codesIn(error).some((code) => UNSENT.has(code)) ? 'unreachable' : 'lost', status: null };
}

/** The status that errors of the AI SDK have. */
function statusIn(error: unknown): number | null {
  const status = (error as { readonly statusCode?: unknown } | null)?.statusCode;
  return typeof status === 'number' && status >= 400 && status < 600 ? status : null;
}

const MAX_CAUSES = 8;

/** The codes of an error and its causes: `fetch` wraps the error of the socket, and that may be one of several addresses. */
function codesIn(error: unknown): readonly string[] {
  const codes: string[] = [];
  let causes: readonly unknown[] = [error];
  for (let depth = 0; depth < MAX_CAUSES && causes.length > 0; depth++) {
    const next: unknown[] = [];
    for (const cause of causes) {
      if (typeof cause !== 'object' || cause === null) continue;
      const { code, cause: inner, errors } = cause as { code?: unknown; cause?: unknown; errors?: unknown };
      if (typeof code === 'string') codes.push(code);
      next.push(inner, ...(Array.isArray(errors) ? (errors as unknown[]) : []));
    }
    causes = next;
  }
  return codes;
}
