import {
  AccessDenied,
  BackendUnavailable,
  HeadgateError,
  InfrastructureError,
  isHeadgateError,
} from '../../../core/errors.js';

export interface AwsOptions {
  readonly region?: string;
  readonly endpoint?: string;
  /** The timeout of one call, including the SDK's retries. */
  readonly callMs?: number;
  /** How often the SDK sends a request that fails with a retryable error. */
  readonly attempts?: number;
}

const CALL_MS = 30_000;
const REQUEST_MS = 10_000;
const CONNECT_MS = 3_000;
const ATTEMPTS = 5;

/** Settings that all clients share. Every request is idempotent, so the SDK may retry it. */
export function clientConfig({ region, endpoint, attempts = ATTEMPTS }: AwsOptions) {
  return {
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    maxAttempts: attempts,
    requestHandler: { connectionTimeout: CONNECT_MS, requestTimeout: REQUEST_MS, throwOnRequestTimeout: true },
  };
}

interface Opened<Sdk, Client> {
  readonly sdk: Sdk;
  readonly client: Client;
}

/** An SDK client. The SDK is loaded by the first call. */
export interface LazyClient<Sdk, Client> {
  /** Sends with a timeout. Failures are errors of Headgate. */
  send<T>(what: string, request: (opened: Opened<Sdk, Client>, signal: AbortSignal) => Promise<T>): Promise<T>;
  close(): void;
}

export function lazyClient<Sdk, Client extends { destroy(): void }>(
  { callMs = CALL_MS }: AwsOptions,
  { peer, load, make }: { peer: string; load: () => Promise<Sdk>; make: (sdk: Sdk) => Client },
): LazyClient<Sdk, Client> {
  let opened: Promise<Opened<Sdk, Client>> | null = null;
  const open = async (): Promise<Opened<Sdk, Client>> => {
    const sdk = await load().catch((cause: unknown) => {
      const message = `This command needs the AWS SDK. Run: npm install ${peer}`;
      throw new InfrastructureError('infrastructure.missing-peer', message, { cause });
    });
    return { sdk, client: make(sdk) };
  };
  return {
    async send(what, request) {
      opened ??= open();
      const late = new AbortController();
      const timer = setTimeout(() => late.abort(), callMs);
      try {
        return await request(await opened, late.signal);
      } catch (error) {
        throw awsFailure(error, what);
      } finally {
        clearTimeout(timer);
      }
    },
    close() {
      void opened?.then(({ client }) => client.destroy()).catch(() => {});
    },
  };
}

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
function awsFailure(thrown: unknown, what: string): HeadgateError {
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
