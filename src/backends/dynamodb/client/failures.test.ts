import { once } from 'node:events';
import { Agent, createServer, type ServerResponse } from 'node:http';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createServer as createSocketServer, type AddressInfo, type Server } from 'node:net';
import { describe, expect, test } from 'vitest';
import { stopTimers } from '../../../../tests/support/models/hand-time.js';
import { clientOf } from '../../../../tests/support/dynamodb/shard/shard-engine.js';
import {
  AccessDenied,
  BackendUnavailable,
  InfrastructureError,
  isHeadgateError,
  SchemaMismatch,
  ValidationError,
} from '../../../core/errors.js';
import { deadlineIn } from '../../../machine-time.js';
import { errorOf, type Failure, failureOf } from './failures.js';
import { send } from './requests.js';
import { leanTransport } from './lean/lean-transport.js';
import { sdkTransport } from './sdk-transport.js';
import type { Transport } from './transport.js';

const ITEM = { PK: { S: 'a' } };

const failure = (shape: object): Failure => failureOf(Object.assign(new Error('why'), shape), 'UpdateItem', 'my-table');
const service = (name: string, status: number, more: object = {}): object => ({
  name,
  $metadata: { httpStatusCode: status },
  ...more,
});

/** The kind of a failure and of its error, which decide whether to retry. */
function told(found: Failure): string {
  if (!('error' in found)) return found.kind;
  if (found.error instanceof BackendUnavailable) return `${found.kind}: ${found.error.kind}`;
  return `${found.kind}: ${isHeadgateError(found.error) ? found.error.code : String(found.error)}`;
}

describe('errors of the SDK', () => {
  test.each([
    ['conflict: contended', service('TransactionConflictException', 400)],
    ['conflict: contended', service('TransactionInProgressException', 400)],
    ['conflict: contended', service('ReplicatedWriteConflictException', 400)],
    ['throttled: throttled', service('ProvisionedThroughputExceededException', 400)],
    ['throttled: throttled', service('ThrottlingException', 400)],
    ['throttled: throttled', service('RequestLimitExceeded', 400)],
    ['throttled: throttled', service('LimitExceededException', 400)],
    ['fatal: backend.denied', service('AccessDeniedException', 400)],
    ['fatal: backend.denied', service('UnrecognizedClientException', 400)],
    ['fatal: backend.denied', service('InvalidSignatureException', 400)],
    ['fatal: backend.denied', service('ExpiredTokenException', 400)],
    ['fatal: backend.denied', { name: 'CredentialsProviderError' }],
    ['fatal: infrastructure.dynamodb', service('ValidationException', 400)],
    ['fatal: infrastructure.dynamodb', service('ItemCollectionSizeLimitExceededException', 400)],
    ['fatal: infrastructure.dynamodb', service('Unknown', 404)],
    ['fatal: infrastructure.dynamodb', { name: 'TypeError' }],
    ['unreached: connection', { code: 'ECONNREFUSED' }],
    ['unreached: connection', { code: 'ENOTFOUND' }],
    ['unreached: connection', { code: 'EAI_AGAIN' }],
    ['unreached: connection', { code: 'EAI_FAIL' }],
    ['unreached: connection', { code: 'EAI_MEMORY' }],
    ['unreached: connection', { code: 'EHOSTUNREACH' }],
    ['unreached: connection', { code: 'ENETUNREACH' }],
    ['lost: connection', { name: 'TimeoutError', code: 'ECONNRESET' }],
    ['lost: connection', { code: 'ECONNRESET' }],
    ['lost: connection', { code: 'EPIPE' }],
    ['lost: connection', { code: 'ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC' }],
    ['lost: connection', { code: 'ERR_SSL_SSLV3_ALERT_BAD_RECORD_MAC' }],
    ['lost: connection', { code: 'ERR_SSL_SSL/TLS_ALERT_BAD_RECORD_MAC' }],
    ['lost: connection', { code: 'HPE_INVALID_CONSTANT' }],
    ['lost: connection', { name: 'TypeError', cause: { code: 'UND_ERR_SOCKET' } }],
    ['lost: connection', { name: 'TypeError', cause: { code: 'ECONNRESET' } }],
    ['unreached: connection', { name: 'TypeError', cause: { code: 'ECONNREFUSED' } }],
    ['lost: timeout', { name: 'TimeoutError' }],
    ['lost: timeout', { name: 'TimeoutError', code: 'ETIMEDOUT' }],
    ['lost: timeout', { code: 'ETIMEDOUT' }],
    ['lost: timeout', { name: 'AbortError' }],
    ['lost: server', service('InternalServerError', 500)],
    ['lost: server', service('ServiceUnavailable', 503)],
    ['lost: server', service('Unknown', 502)],
    ['lost: server', service('SyntaxError', 200)],
    ['lost: server', service('SyntaxError', 500)],
    ['fatal: infrastructure.dynamodb', service('SyntaxError', 404)],
  ])('a failure is classified as %s for the error %j', (expected, shape) => {
    expect(told(failure(shape))).toBe(expected);
  });

  test('a failed condition has the item that refused it, or undefined if there is none', () => {
    expect(failure({ name: 'ConditionalCheckFailedException', Item: ITEM })).toEqual({ kind: 'condition', item: ITEM });
    expect(failure({ name: 'ConditionalCheckFailedException' })).toEqual({ kind: 'condition', item: undefined });
  });

  test('a cancelled transaction has one reason for each action', () => {
    const CancellationReasons = [{ Code: 'None' }, { Code: 'ConditionalCheckFailed', Item: ITEM }, {}];
    expect(failure({ name: 'TransactionCanceledException', CancellationReasons })).toEqual({
      kind: 'cancelled',
      reasons: [
        { code: 'None', item: undefined },
        { code: 'ConditionalCheckFailed', item: ITEM },
        { code: 'None', item: undefined },
      ],
    });
    expect(failure({ name: 'TransactionCanceledException' })).toEqual({ kind: 'cancelled', reasons: [] });
  });

  test.each([
    [true, { ThrottlingReasons: [{ reason: 'TableWriteKeyRangeThroughputExceeded' }] }],
    [true, { throttlingReasons: [{ reason: 'TableReadKeyRangeThroughputExceeded', resource: 'arn' }] }],
    [false, { ThrottlingReasons: [{ reason: 'TableWriteMaxOnDemandThroughputExceeded' }, {}] }],
    [false, { throttlingReasons: [] }],
    [false, {}],
  ])('that throttles names a hot key: %s, for %j', (hotKey, reasons) => {
    expect(failure({ name: 'ThrottlingException', ...reasons })).toMatchObject({ kind: 'throttled', hotKey });
  });

  test('a missing table is reported with the command that creates it', () => {
    const missing = failure(service('ResourceNotFoundException', 400));
    const error = 'error' in missing ? missing.error : undefined;
    expect(error).toBeInstanceOf(SchemaMismatch);
    expect(String(error)).toContain('my-table');
    expect(missing.kind).toBe('fatal');
  });

  test('a failure has the thrown error as its cause, and its message names the operation', () => {
    const thrown = Object.assign(new Error('not allowed'), { name: 'AccessDeniedException' });
    const found = failureOf(thrown, 'UpdateItem', 'my-table');
    if (found.kind !== 'fatal') throw new Error(found.kind);
    expect(found.error).toBeInstanceOf(AccessDenied);
    expect(found.error).toMatchObject({ message: 'UpdateItem: not allowed', cause: thrown });
  });

  test('an error of Headgate is passed on unchanged', () => {
    const own = new ValidationError('field', 'whole', 1.5);
    expect(failureOf(own, 'UpdateItem', 't')).toEqual({ kind: 'fatal', error: own });
  });

  test.each([undefined, null, 'text', 7])('the thrown value %j is classified as a failure', (thrown) => {
    const found = failureOf(thrown, 'UpdateItem', 't');
    expect(told(found)).toBe('fatal: infrastructure.dynamodb');
    expect(String('error' in found ? found.error : '')).toContain(String(thrown));
  });
});

test('the error of a failure is its own, or says that a condition failed unexpectedly', () => {
  const error = new BackendUnavailable('out', 'server');
  expect(errorOf({ kind: 'lost', error }, 'PutItem')).toBe(error);
  expect(errorOf({ kind: 'condition', item: undefined }, 'PutItem')).toBeInstanceOf(InfrastructureError);
});

const KEYS = { accessKeyId: 'a', secretAccessKey: 'b' };
const notInstalled = async (): Promise<never> => Promise.reject(new Error('Cannot find package'));

const TRANSPORTS: Readonly<Record<string, (endpoint: string) => Transport & { readonly destroy: () => void }>> = {
  'the SDK': (endpoint) => {
    const client = clientOf({ region: 'us-east-1', credentials: KEYS }, endpoint);
    return { ...sdkTransport({ client }), destroy: () => client.destroy() };
  },
  'the lean transport': (endpoint) => {
    const transport = leanTransport({ endpoint }, { packages: { providers: notInstalled, client: notInstalled } });
    return { ...transport, destroy: () => transport.close() };
  },
};

/** The failures that each transport makes of such answers. */
describe.each(Object.entries(TRANSPORTS))('answers of the store to %s', (_name, transportTo) => {
  const serve = async (server: Server, work: (port: number) => Promise<void>): Promise<void> => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      await work((server.address() as AddressInfo).port);
    } finally {
      server.close();
    }
  };
  const ask = async (port: number, timeoutMs = 5_000): Promise<string> => {
    const transport = transportTo(`http://127.0.0.1:${port}`);
    const table = { name: 'my-table', transport, random: Math.random };
    const answer = await send(table, 'UpdateItem', { TableName: 'my-table', Key: ITEM }, deadlineIn(timeoutMs));
    transport.destroy();
    return answer.ok ? 'ok' : told(answer.failure);
  };

  test.each<[string, string, (answer: ServerResponse) => void]>([
    [
      'an answer that is cut off',
      'lost: connection',
      (answer) => answer.writeHead(200, { 'Content-Length': '99' }).write('{"Attr', () => answer.destroy()),
    ],
    ['an answer that is not JSON', 'lost: server', (answer) => answer.writeHead(200).end('<html>')],
    ['status 502 without a body', 'lost: server', (answer) => answer.writeHead(502).end()],
    ['status 200 without a body', 'lost: server', (answer) => answer.writeHead(200).end()],
    ['status 200 with an empty object', 'lost: server', (answer) => answer.writeHead(200).end('{}')],
    ['status 200 without an object', 'lost: server', (answer) => answer.writeHead(200).end('null')],
    ['status 302 from a proxy', 'lost: server', (answer) => answer.writeHead(302, { Location: '/' }).end()],
    ['status 400 without a body', 'lost: server', (answer) => answer.writeHead(400).end()],
    ['status 400 with a truncated body', 'lost: server', (answer) => answer.writeHead(400).end('{"__type":"com.amaz')],
    ['status 403 from a gateway', 'lost: server', (answer) => answer.writeHead(403).end('{"message":"Forbidden"}')],
    [
      'status 403 from a gateway with a code',
      'lost: server',
      (answer) => answer.writeHead(403).end('{"code":"Forbidden"}'),
    ],
    ['status 404 from a web server', 'lost: server', (answer) => answer.writeHead(404).end('<html>')],
    [
      'status 400 from DynamoDB',
      'fatal: infrastructure.dynamodb',
      (answer) => answer.writeHead(400).end('{"__type":"com.amazon.coral.validate#ValidationException"}'),
    ],
    ['a connection that ends without an answer', 'lost: connection', (answer) => answer.socket?.destroy()],
  ])('%s is classified as %s', async (_, expected, reply) => {
    const server = createServer((request, answer) => request.resume().on('end', () => reply(answer)));
    await serve(server, async (port) => expect(await ask(port)).toBe(expected));
  });

  test('an answer that is not HTTP is a lost connection', async () => {
    const server = createSocketServer((socket) => socket.on('data', () => socket.end('GARBAGE\r\n\r\n')));
    await serve(server, async (port) => expect(await ask(port)).toBe('lost: connection'));
  });

  test('an answer that does not come in time is a lost timeout', async () => {
    using time = stopTimers();
    const server = createServer(() => time.pass(50));
    await serve(server, async (port) => {
      expect(await ask(port, 50)).toBe('lost: timeout');
      server.closeAllConnections();
    });
  });

  test('a request to a port without a server is unreached', async () => {
    let free = 0;
    await serve(createServer(), async (port) => void (free = port));
    expect(await ask(free)).toBe('unreached: connection');
  });
});

test('a connection that the SDK could not make in time is classified as unsent', async () => {
  const client = new DynamoDBClient({
    endpoint: 'http://host.invalid',
    region: 'us-east-1',
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    maxAttempts: 1,
    // The host name never resolves.
    requestHandler: { connectionTimeout: 10, httpAgent: new Agent({ lookup: () => {} }) },
  });
  const table = { name: 't', transport: sdkTransport({ client }), random: Math.random };
  const answer = await send(table, 'GetItem', { TableName: 't', Key: {} }, deadlineIn(10_000));
  expect(answer).toMatchObject({ ok: false, failure: { kind: 'lost', unsent: true } });
  client.destroy();
});

test('a region that is missing is bad input, and the message names every place where one can be given', async () => {
  const client = new DynamoDBClient({
    region: (): Promise<string> => Promise.reject(new Error('Region is missing')),
    credentials: KEYS,
  });
  const table = { name: 'limits', transport: sdkTransport({ client }), random: Math.random };
  const answer = await send(table, 'GetItem', { TableName: 'limits', Key: ITEM }, deadlineIn(1_000)).catch(
    (error: unknown) => error,
  );
  const error = answer instanceof Error ? answer : errorOf((answer as { failure: Failure }).failure, 'GetItem');
  expect(error).toMatchObject({
    code: 'input.invalid',
    exitCode: 3,
    message:
      'No AWS region is known for table limits: name one by region= in the address (HEADGATE_URL), by the option region, by AWS_REGION, or in the AWS profile, which @aws-sdk/client-dynamodb reads if it is installed',
  });
  client.destroy();
});
