import { crc32 } from 'node:zlib';
import { LostAnswer } from '../lost-answer.js';
import type { HttpAnswer } from './post.js';

type Fields = Record<string, unknown>;

/** Fields of DynamoDB's errors that `failureOf` reads. */
const ERROR_FIELDS = ['Item', 'CancellationReasons', 'ThrottlingReasons', 'throttlingReasons'] as const;

/**
 * The output in an answer. Throws DynamoDB's own error in the form of the SDK's, and `LostAnswer` for everything that is
 * not a whole answer of DynamoDB.
 *
 * DynamoDB's JSON is the form that the SDK's types describe, except for binary values and times, which Headgate does not
 * use: they stay text and numbers.
 */
export function readAnswer({ status, headers, body }: HttpAnswer): Fields {
  const checksum = headers['x-amz-crc32'];
  if (checksum !== undefined && Number(checksum) !== crc32(body)) {
    throw new LostAnswer(`the answer with status ${status} does not have the bytes that its checksum is of`);
  }
  const fields = parseObject(status, body.toString('utf8'));
  if (status >= 200 && status < 300) return withoutNulls(fields);
  throw errorOfStore(status, headers, fields);
}

function parseObject(status: number, text: string): Fields {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw notOfStore(status, cause instanceof Error ? cause.message : String(cause), cause);
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw notOfStore(status, 'it is not a JSON object');
  }
  return parsed as Fields;
}

/** The SDK leaves out fields that are null. */
function withoutNulls(fields: Fields): Fields {
  for (const name in fields) if (fields[name] === null) delete fields[name];
  return fields;
}

/** `com.amazonaws.dynamodb.v20120810#ThrottlingException` has the name behind its last `#`. */
function errorOfStore(status: number, headers: HttpAnswer['headers'], fields: Fields): Error {
  const { __type: type, message, Message = message } = fields;
  // The error page of a proxy has no such field.
  if (typeof type !== 'string') return notOfStore(status, typeof Message === 'string' ? Message : 'it names no error');
  const error = new Error(typeof Message === 'string' ? Message : 'UnknownError');
  const $metadata = { httpStatusCode: status, requestId: headers['x-amzn-requestid'] };
  Object.assign(error, { name: type.slice(type.lastIndexOf('#') + 1), __type: type, $metadata });
  for (const name of ERROR_FIELDS) if (fields[name] !== undefined) Object.assign(error, { [name]: fields[name] });
  return error;
}

function notOfStore(status: number, why: string, cause?: unknown): LostAnswer {
  return new LostAnswer(`the answer with status ${status} is not DynamoDB's: ${why}`, { cause });
}
