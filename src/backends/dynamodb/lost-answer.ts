import { CONNECTION_CODE } from './failures.js';

/** What was sent may have been written: its answer is broken, incomplete, or not DynamoDB's. */
export class LostAnswer extends Error {
  override readonly name = 'LostAnswer';
}

/** Where DynamoDB names its error; a page of a proxy has no such field. */
const ERROR_TYPE = '__type';

interface AnswerError {
  readonly [ERROR_TYPE]?: unknown;
  readonly code?: unknown;
  readonly message?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

/** The error to throw for one that the SDK threw after an answer had come. */
export function readAnswerError(thrown: unknown): unknown {
  const error = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as AnswerError;
  const status = error.$metadata?.httpStatusCode;
  const isOfDynamoDB = typeof error[ERROR_TYPE] === 'string';
  const isBrokenOff = typeof error.code === 'string' && CONNECTION_CODE.test(error.code);
  if (status === undefined || isOfDynamoDB || isBrokenOff) return thrown;
  // The SDK's own hint to its hidden fields is of no use to a reader of this message.
  const [reason = ''] = (error.message ?? '').split('\n');
  return new LostAnswer(`the answer with status ${status} is not DynamoDB's: ${reason}`, { cause: thrown });
}
