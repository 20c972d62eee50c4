import { isBrokenOff } from './failures.js';

/** The request may have been executed: its answer is broken, incomplete, or not from DynamoDB. */
export class LostAnswer extends Error {
  override readonly name = 'LostAnswer';
}

/** The field in which DynamoDB names its error. The error page of a proxy has no such field. */
const ERROR_TYPE = '__type';

/** Errors that already say what became of the answer. */
const ENDED = new Set(['AbortError', 'LostAnswer', 'TimeoutError']);

interface AnswerError {
  readonly [ERROR_TYPE]?: unknown;
  readonly name?: string;
  readonly message?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

/**
 * The error to throw for one that was thrown after an answer arrived: by the SDK, which could not read it, or by
 * middleware of the caller's client. The request may have been executed, unless DynamoDB itself says that it was not.
 */
export function readAnswerError(thrown: unknown): unknown {
  const error = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as AnswerError;
  const isOfDynamoDB = typeof error[ERROR_TYPE] === 'string';
  if (isOfDynamoDB || isBrokenOff(thrown) || ENDED.has(error.name ?? '')) return thrown;
  // The further lines are the SDK's hint at its hidden fields, which does not help a reader of this message.
  const [reason = ''] = (error.message ?? String(thrown)).split('\n');
  const status = error.$metadata?.httpStatusCode;
  const what =
    status === undefined ? 'the answer was not passed on' : `the answer with status ${status} is not DynamoDB's`;
  return new LostAnswer(`${what}: ${reason}`, { cause: thrown });
}
