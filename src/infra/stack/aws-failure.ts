import {
  AccessDenied,
  BackendUnavailable,
  HeadgateError,
  InfrastructureError,
  isHeadgateError,
} from '../../core/errors.js';

interface ServiceError {
  readonly name?: string;
  readonly message?: string;
  readonly code?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

/** CloudFormation and Lambda spell these names differently. */
const ACCESS =
  /^(?:AccessDenied|UnauthorizedOperation|NotAuthorized|InvalidClientTokenId|UnrecognizedClient|SignatureDoesNotMatch|InvalidSignature|IncompleteSignature|MissingAuthenticationToken|ExpiredToken|OptInRequired)/;
const THROTTLING = /^(?:Throttl|TooManyRequests|RequestLimitExceeded|SlowDown)/;
/** The SDK has no error class for a missing region. */
const NO_REGION = /^Region (?:is missing|not accepted)/;
const NO_CREDENTIALS =
  'There are no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run `aws sso login`';

/** Classifies a failed AWS request. `what` names the request: "CloudFormation DescribeStacks". */
export function awsFailure(thrown: unknown, what: string): HeadgateError {
  if (isHeadgateError(thrown)) return thrown;
  const { name = '', message = String(thrown), code, $metadata } = (thrown ?? {}) as ServiceError;
  const wrap = { cause: thrown };
  if (name === 'CredentialsProviderError') return new AccessDenied(NO_CREDENTIALS, wrap);
  if (NO_REGION.test(message)) {
    return new HeadgateError(
      'input.invalid',
      `${message.replace(/\.$/, '')}: set it with --region, AWS_REGION or the profile`,
      wrap,
    );
  }
  if (ACCESS.test(name)) return new AccessDenied(`${what}: ${message}`, wrap);
  if (THROTTLING.test(name)) return new BackendUnavailable(`${what}: ${name}: ${message}`, 'throttled', wrap);
  if (name === 'AbortError' || name === 'TimeoutError' || code === 'ETIMEDOUT') {
    return new BackendUnavailable(`${what}: no answer in time`, 'timeout', wrap);
  }
  if (code !== undefined && /^(?:E[A-Z_]+|HPE_[A-Z_]+)$/.test(code)) {
    return new BackendUnavailable(`${what}: ${message === '' ? code : message}`, 'connection', wrap);
  }
  if (($metadata?.httpStatusCode ?? 0) >= 500) {
    return new BackendUnavailable(`${what}: ${name}: ${message}`, 'server', wrap);
  }
  return new InfrastructureError('infrastructure.refused', `${what}: ${message}`, wrap);
}

/** The name of the error that AWS returned; null for other errors. */
export function serviceErrorName(error: unknown): string | null {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error ? cause.name : null;
}
