import { randomUUID } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { HeadgateError } from '../../../../core/errors.js';
import type { EpochMs } from '../../../../core/units.js';
import { reasonOf } from '../../../../core/reason-of.js';
import { type Deadline, timeLeftMs } from '../../../../machine-time.js';
import type { Environment } from '../loopback.js';
import { LostAnswer } from '../lost-answer.js';
import { StoreClock } from '../store-clock.js';
import type { AttributeValue, Operation, Operations, Transport } from '../transport.js';
import type { HttpAnswer } from './answer-reader.js';
import { noConnection } from './connection.js';
import { Connections, headerLines } from './connections.js';
import type { DialOptions } from './dial.js';
import type { SettingsPackages } from './provider-chain.js';
import { type GivenSettings, resolveSettings } from './settings.js';
import { type AwsCredentials, CredentialCache, Signer, type Signing, timestamp } from './sign.js';

export interface LeanInternals extends DialOptions {
  readonly packages: SettingsPackages;
  readonly env?: Environment;
}

interface Opened {
  readonly headOf: HeadOf;
  readonly credentials: CredentialCache;
  readonly connections: Connections;
}

const CONTENT_TYPE = 'application/x-amz-json-1.0';
const EXPIRED = new Set(['ExpiredTokenException', 'ExpiredToken']);
const BAD_SIGNATURE = 'InvalidSignatureException';
/** DynamoDB refuses signatures that are five minutes off. `Date` has whole seconds, and an answer takes time. */
const STALE_MS = 240_000;

/**
 * Signed JSON over connections that are kept open, without the AWS SDK. Each request is executed at most once. It is sent
 * again if DynamoDB refused it because the clock of this machine is wrong, or because its keys have expired: once for each.
 */
export function leanTransport(given: GivenSettings, internals: LeanInternals): Transport {
  const { packages, env = process.env, ...dialOptions } = internals;
  const clock = new StoreClock();
  /** The offset by the last answer, for signatures only, until the clock is confirmed. */
  let doubtfulOffsetMs = 0;
  let opening: Promise<Opened> | null = null;
  let opened: Opened | null = null;

  const open = async (): Promise<Opened> => {
    const { region, endpoint, proxy, fetchCredentials } = await resolveSettings(given, env, packages);
    return {
      headOf: cacheHeads(endpoint, new Signer(region, 'dynamodb')),
      credentials: new CredentialCache(fetchCredentials),
      connections: new Connections(endpoint, proxy, dialOptions),
    };
  };
  const ready = async (): Promise<Opened> => {
    const started = (opening ??= open());
    try {
      const made = await started;
      if (opening === started) opened = made;
      return made;
    } catch (error) {
      if (opening === started) opening = null;
      throw error;
    }
  };
  const signingTimeMs = (): EpochMs => clock.now() ?? Date.now() + doubtfulOffsetMs;

  return {
    async load() {
      await ready().catch((error: unknown) => {
        // Other failures are those of the first request, which is classified and names the table.
        if (error instanceof HeadgateError) throw error;
      });
    },
    async send<Op extends Operation>(operation: Op, input: Operations[Op][0], deadline: Deadline) {
      const { headOf, credentials, connections } = opened ?? (await before(deadline, ready()));
      const body = JSON.stringify(withToken(operation, input));
      let [atMs, isSignedAgain, hasNewKeys] = [signingTimeMs(), false, false];
      for (;;) {
        const taken = credentials.take(atMs);
        const keys = taken instanceof Promise ? await before(deadline, taken) : taken;
        const { lines, sign } = headOf(operation, keys, timestamp(atMs));
        const observe = clock.startRequest();
        const answer = await connections.post(`${lines}${sign(body)}`, body, deadline);
        const { date } = answer.headers;
        observe(date);
        if (clock.now() === null && date !== undefined) doubtfulOffsetMs = Date.parse(date) - Date.now() || 0;
        try {
          return readAnswer(answer);
        } catch (error) {
          // DynamoDB has executed nothing if it refused the request for its keys, or for the time of its signature.
          const name = error instanceof Error ? error.name : '';
          const storeMs = Date.parse(date ?? '');
          if (EXPIRED.has(name)) {
            credentials.refuse(keys);
            if (hasNewKeys) throw error;
            hasNewKeys = true;
          } else if (name === BAD_SIGNATURE && Math.abs(storeMs - atMs) > STALE_MS && !isSignedAgain) {
            // At the store's time the keys may have expired, too.
            [atMs, isSignedAgain] = [storeMs, true];
          } else throw error;
        }
      }
    },
    storeTimeMs: () => clock.now(),
    isTimeInDoubt: () => clock.isInDoubt,
    takeClockNews: () => clock.takeNews(),
    close() {
      const started = opening;
      opening = opened = null;
      void started?.then(({ connections }) => connections.close()).catch(() => {});
    },
  };
}

/** As the SDK does: a transaction that a proxy sends twice counts once, and both answers are of the first. */
function withToken<Input extends object>(operation: Operation, input: Input): Input {
  return operation === 'TransactWriteItems' ? { ClientRequestToken: randomUUID(), ...input } : input;
}

/** The headers of requests with one operation, credentials and timestamp. They end with the start of the signature. */
interface Head {
  readonly keys: AwsCredentials;
  readonly atTime: string;
  readonly lines: string;
  readonly sign: Signing['sign'];
}

type HeadOf = (operation: Operation, keys: AwsCredentials, atTime: string) => Head;

/** Caches the last head of each operation: the requests of one second have the same headers. */
function cacheHeads({ host, pathname: path }: URL, signer: Signer): HeadOf {
  const heads = new Map<Operation, Head>();
  return (operation, keys, atTime) => {
    const cached = heads.get(operation);
    if (cached?.atTime === atTime && cached.keys === keys) return cached;
    const headers = signedHeaders(operation, host, atTime, keys);
    const { start, sign } = signer.prepare({ method: 'POST', path, headers }, keys, atTime);
    const lines = headerLines([...headers, 'user-agent', 'headgate', 'authorization', start]);
    const head = { keys, atTime, lines, sign };
    heads.set(operation, head);
    return head;
  };
}

/** Names and values alternate, in the order of the names' characters, as the signature requires. */
function signedHeaders(operation: Operation, host: string, atTime: string, { sessionToken }: AwsCredentials): string[] {
  const headers = ['content-type', CONTENT_TYPE, 'host', host, 'x-amz-date', atTime];
  // Servers leave out blanks around a value, and the signature must be of what is left.
  if (sessionToken !== undefined) headers.push('x-amz-security-token', sessionToken.trim());
  headers.push('x-amz-target', `DynamoDB_20120810.${operation}`);
  return headers;
}

/** Ends at the deadline: nothing was sent by then. */
async function before<T>(deadline: Deadline, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(noConnection('before its deadline')), Math.max(1, Math.ceil(timeLeftMs(deadline))));
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

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
export function readAnswer({ status, headers, body }: Omit<HttpAnswer, 'keepsOpen'>): Fields {
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
    parsed = parseOutput(text);
  } catch (cause) {
    throw notOfStore(status, reasonOf(cause), cause);
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

const START = '{"Attributes":{';
/** A backslash starts an escape sequence, and JSON allows no control character in a string. */
const NOT_PLAIN = /[\\\p{Cc}]/u;
/** V8 copies shorter parts of a string. A longer part refers to the whole string, and keeps it in memory. */
const LONGEST_COPIED = 12;

/**
 * Returns what `JSON.parse` returns. An item with string and number attributes only, as a write of a bucket returns it, is
 * read without `JSON.parse`: the attributes come in a different order each time, so `JSON.parse` makes a hidden class for
 * every attribute of every answer, which takes three times as long.
 */
export function parseOutput(text: string): unknown {
  const item = text.startsWith(START) && !NOT_PLAIN.test(text) ? parsePlainItem(text) : null;
  return item === null ? JSON.parse(text) : { Attributes: item };
}

/** null: the text has another form, or is not JSON. */
function parsePlainItem(text: string): Record<string, AttributeValue> | null {
  // Without a prototype, V8 keeps the attributes in a hash table.
  const item = Object.create(null) as Record<string, AttributeValue>;
  let at = START.length;
  for (;;) {
    const nameEnd = text.indexOf('":{"', at);
    const valueStart = nameEnd + 8;
    const valueEnd = text.indexOf('"', valueStart);
    if (nameEnd < 0 || valueEnd < 0 || text[at] !== '"' || text.indexOf('"', at + 1) !== nameEnd) return null;
    const name = text.slice(at + 1, nameEnd);
    if (text.startsWith('N":"', nameEnd + 4)) item[name] = { N: text.slice(valueStart, valueEnd) };
    else if (text.startsWith('S":"', nameEnd + 4)) item[name] = { S: copyOf(text, valueStart, valueEnd) };
    else return null;
    if (text[valueEnd + 1] !== '}') return null;
    at = valueEnd + 3;
    if (text[valueEnd + 2] === '}') return at === text.length - 1 && text[at] === '}' ? item : null;
    if (text[valueEnd + 2] !== ',') return null;
  }
}

/** A part of the text that does not keep the whole text in memory: write ids and holders are cached. */
function copyOf(text: string, start: number, end: number): string {
  if (end - start <= LONGEST_COPIED) return text.slice(start, end);
  return JSON.parse(text.slice(start - 1, end + 1)) as string;
}
