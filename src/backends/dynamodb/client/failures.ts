import {
  AccessDenied,
  BackendUnavailable,
  HeadgateError,
  InfrastructureError,
  SchemaMismatch,
} from '../../../core/errors.js';
import type { Item } from './transport.js';

/** What a failed request means for its sender. */
export type Failure =
  /** The condition did not hold; nothing was written. `item` is the stored item, undefined if there is none. */
  | { readonly kind: 'condition'; readonly item: Item | undefined }
  /** A condition of a transaction did not hold; nothing was written. One reason per action. */
  | { readonly kind: 'cancelled'; readonly reasons: readonly CancelReason[] }
  /** Another transaction was writing the same item; nothing was written. */
  | { readonly kind: 'conflict'; readonly error: HeadgateError }
  /** Throttled; nothing was written. `hotKey`: DynamoDB names this range of keys as the cause. */
  | { readonly kind: 'throttled'; readonly hotKey: boolean; readonly error: HeadgateError }
  /** The request did not reach the store; nothing was written. */
  | { readonly kind: 'unreached'; readonly error: HeadgateError }
  /**
   * No answer, or a broken one: the write may or may not have happened. `unsent`: the connection was not made.
   */
  | { readonly kind: 'lost'; readonly error: HeadgateError; readonly unsent?: boolean }
  /** A retry would not help; nothing was written. */
  | { readonly kind: 'fatal'; readonly error: unknown };

export interface CancelReason {
  readonly code: 'None' | 'ConditionalCheckFailed' | 'TransactionConflict' | 'ThrottlingError' | (string & {});
  readonly item: Item | undefined;
}

interface ServiceError {
  readonly name?: string;
  readonly message?: string;
  readonly code?: string;
  readonly cause?: { readonly code?: string };
  /** The transport knows that nothing was sent. */
  readonly unsent?: boolean;
  readonly Item?: Item;
  readonly CancellationReasons?: readonly { readonly Code?: string; readonly Item?: Item }[];
  readonly ThrottlingReasons?: readonly { readonly reason?: string }[];
  readonly throttlingReasons?: readonly { readonly reason?: string }[];
  readonly $metadata?: { readonly httpStatusCode?: number };
}

const THROTTLING = new Set([
  'ProvisionedThroughputExceededException',
  'ThrottlingException',
  'RequestLimitExceeded',
  'LimitExceededException',
]);
const CONFLICT = new Set([
  'TransactionConflictException',
  'TransactionInProgressException',
  'ReplicatedWriteConflictException',
]);
const ACCESS = new Set([
  'AccessDeniedException',
  'UnrecognizedClientException',
  'InvalidSignatureException',
  'IncompleteSignatureException',
  'MissingAuthenticationTokenException',
  'ExpiredTokenException',
  'ExpiredToken',
  'CredentialsProviderError',
]);
/** The connection was never made, so nothing can have been written. EAI: the name of the host was not resolved. */
const UNREACHED = /^(?:ECONNREFUSED|ENOTFOUND|EAI_[A-Z]+|EHOSTUNREACH|ENETUNREACH)$/;

/**
 * Codes of a broken connection. HPE: the answer is not HTTP. UND: a request handler of the caller's that uses fetch. A bad
 * record of TLS comes after the handshake, so the request may have been sent.
 */
const CONNECTION_CODE = /^(?:E[A-Z]+|HPE_[A-Z_]+|UND_ERR_[A-Z_]+|ERR_SSL_[A-Z0-9_/]*BAD_RECORD_MAC)$/;

/** The SDK's message when it gave up connecting, before it sent anything. It has no code for that. */
const NO_CONNECTION = /did not establish a connection/;

/** The SDK has no error class for a missing region. */
const NO_REGION = /^Region (?:is missing|not accepted)/;

/** Classifies an error that a transport threw. `what` and `table` go into messages. */
export function failureOf(thrown: unknown, what: string, table: string): Failure {
  const error = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as ServiceError;
  const { name = '', message = String(thrown) } = error;
  const wrap = { cause: thrown };
  if (name === 'ConditionalCheckFailedException') return { kind: 'condition', item: error.Item };
  if (name === 'TransactionCanceledException') return { kind: 'cancelled', reasons: cancelReasons(error) };
  if (CONFLICT.has(name)) {
    return {
      kind: 'conflict',
      error: new BackendUnavailable(`${what}: other writers were writing the same item`, 'contended', wrap),
    };
  }
  if (THROTTLING.has(name)) {
    const unavailable = new BackendUnavailable(
      `${what}: DynamoDB throttles table ${table} (${name})`,
      'throttled',
      wrap,
    );
    return { kind: 'throttled', hotKey: namesHotKey(error), error: unavailable };
  }
  if (NO_REGION.test(message)) return { kind: 'fatal', error: missingRegion(table, wrap) };
  if (ACCESS.has(name)) return { kind: 'fatal', error: new AccessDenied(`${what}: ${message}`, wrap) };
  if (name === 'ResourceNotFoundException') {
    return { kind: 'fatal', error: missingTable(table, wrap) };
  }
  if (isUnreached(error)) {
    return { kind: 'unreached', error: new BackendUnavailable(`${what}: ${message}`, 'connection', wrap) };
  }
  if ((error.$metadata?.httpStatusCode ?? 0) >= 500) {
    return { kind: 'lost', error: new BackendUnavailable(`${what}: ${name}: ${message}`, 'server', wrap) };
  }
  // The SDK calls a connection that was cut a TimeoutError, too. Its code shows the difference.
  if (isBrokenOff(error)) {
    const unsent = error.unsent === true;
    return { kind: 'lost', unsent, error: new BackendUnavailable(`${what}: ${message}`, 'connection', wrap) };
  }
  if (name === 'LostAnswer') {
    return { kind: 'lost', error: new BackendUnavailable(`${what}: ${message}`, 'server', wrap) };
  }
  // An answer with status 200 that cannot be parsed: the request succeeded.
  if (name === 'SyntaxError' && error.$metadata?.httpStatusCode === 200) {
    return { kind: 'lost', error: new BackendUnavailable(`${what}: the answer is broken: ${message}`, 'server', wrap) };
  }
  if (name === 'TimeoutError' || name === 'AbortError' || error.code === 'ETIMEDOUT') {
    const unsent = error.unsent === true || NO_CONNECTION.test(message);
    return { kind: 'lost', unsent, error: new BackendUnavailable(`${what}: no answer in time`, 'timeout', wrap) };
  }
  if (thrown instanceof HeadgateError) return { kind: 'fatal', error: thrown };
  return {
    kind: 'fatal',
    error: new InfrastructureError('infrastructure.dynamodb', `${what}: ${name}: ${message}`, wrap),
  };
}

/** Whether the code of the error says that no connection was made. */
function isUnreached(thrown: unknown): boolean {
  return typeof thrown === 'object' && thrown !== null && UNREACHED.test(codeOf(thrown));
}

/** Whether the connection broke while the request or its answer was under way. */
export function isBrokenOff(thrown: unknown): boolean {
  const code = typeof thrown === 'object' && thrown !== null ? codeOf(thrown) : '';
  return CONNECTION_CODE.test(code) && code !== 'ETIMEDOUT';
}

/** `fetch` names the reason in its cause. */
function codeOf({ code, cause }: Pick<ServiceError, 'code' | 'cause'>): string {
  return typeof code === 'string' ? code : (cause?.code ?? '');
}

function missingTable(table: string, options?: { readonly cause?: unknown }): SchemaMismatch {
  return new SchemaMismatch(`DynamoDB has no table ${table}`, `headgate deploy --table ${table}`, options);
}

function missingRegion(table: string, options: { readonly cause: unknown }): HeadgateError {
  const message = `No AWS region is known for table ${table}: name one by region= in the address (HEADGATE_URL), by the option region, by AWS_REGION, or in the AWS profile, which @aws-sdk/client-dynamodb reads if it is installed`;
  return new HeadgateError('input.invalid', message, options);
}

function cancelReasons({ CancellationReasons = [] }: ServiceError): readonly CancelReason[] {
  return CancellationReasons.map(({ Code = 'None', Item: item }) => ({ code: Code, item }));
}

/** The reasons for which DynamoDB cancels a transaction that can be written later. */
const THROTTLING_REASONS = new Set(['ThrottlingError', 'ProvisionedThroughputExceeded']);
const OF_OTHER_WRITERS = new Set(['None', 'ConditionalCheckFailed', 'TransactionConflict']);

/** The failure that a cancelled transaction means for its sender: `cancelled` only if other writers caused it. */
export function causeOfCancel(reasons: readonly CancelReason[], what: string, table: string): Failure {
  const codes = reasons.map(({ code }) => code).filter((code) => !OF_OTHER_WRITERS.has(code));
  const [first] = codes;
  // The condition decides: what is throttled beside it would not be written anyway.
  if (first === undefined || reasons.some(({ code }) => code === 'ConditionalCheckFailed')) {
    return { kind: 'cancelled', reasons };
  }
  if (codes.every((code) => THROTTLING_REASONS.has(code))) {
    const error = new BackendUnavailable(`${what}: DynamoDB throttles table ${table} (${first})`, 'throttled');
    return { kind: 'throttled', hotKey: false, error };
  }
  const message = `${what}: cancelled (${codes.join(', ')})`;
  return { kind: 'fatal', error: new InfrastructureError('infrastructure.dynamodb', message) };
}

/** DynamoDB names the cause of throttling: `TableWriteKeyRangeThroughputExceeded` is one range of keys of the table. */
function namesHotKey({ ThrottlingReasons, throttlingReasons }: ServiceError): boolean {
  return (ThrottlingReasons ?? throttlingReasons ?? []).some(({ reason }) => reason?.includes('KeyRange') === true);
}

/** Whether DynamoDB will never accept the request that led to this error, such as one that makes an item too large. */
export function isRefusedForEver(error: unknown): boolean {
  if (!(error instanceof InfrastructureError)) return false;
  return (error.cause as ServiceError | undefined)?.name === 'ValidationException';
}

/** The error to throw for a failure that the sender does not handle. */
export function errorOf(failure: Failure, what: string): unknown {
  if ('error' in failure) return failure.error;
  return new InfrastructureError('infrastructure.dynamodb', `${what}: a condition failed unexpectedly`);
}
