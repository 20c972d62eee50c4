import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, test } from 'vitest';
import { failureOfError } from '../../../src/integrations/llm/call/failure.js';

const kindOf = (error: unknown): string => failureOfError(error, null).kind;

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

async function portOf(server: ReturnType<typeof createTcpServer>): Promise<number> {
  stops.push(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

async function errorOf(url: string, init: RequestInit = {}): Promise<unknown> {
  return fetch(url, init).then(
    () => {
      throw new Error('the call was answered');
    },
    (error: unknown) => error,
  );
}

describe('the errors of fetch', () => {
  test.each([
    ['a key with a line break', 'Bearer sk-1\nsk-2'],
    ['a key in typographic quotation marks', 'Bearer “sk-1”'],
  ])('%s is never sent', async (_, authorization) => {
    expect(kindOf(await errorOf('http://127.0.0.1:9/', { headers: { authorization } }))).toBe('unreachable');
  });

  test.each(['nonsense', 'foo://127.0.0.1/', 'http://127.0.0.1:6000/'])('a call to %s is never sent', async (url) => {
    expect(kindOf(await errorOf(url))).toBe('unreachable');
  });

  test('a connection that is refused, or that is no TLS, sends nothing', async () => {
    const port = await portOf(createServer((_, response) => response.end()));
    expect(kindOf(await errorOf(`https://127.0.0.1:${port}/`))).toBe('unreachable');
    const resetting = await portOf(createTcpServer((socket) => socket.destroy()));
    expect(kindOf(await errorOf(`https://127.0.0.1:${resetting}/`))).toBe('unreachable');
    for (const stop of stops.splice(0)) stop();
    expect(kindOf(await errorOf(`http://127.0.0.1:${port}/`))).toBe('unreachable');
  });

  test('a certificate that is not trusted, and a handshake without a common cipher, send nothing', async () => {
    const folder = new URL('../../fixtures/tls/', import.meta.url);
    const [cert, key] = ['cert.pem', 'key.pem'].map((name) => readFileSync(new URL(name, folder)));
    const untrusted = await portOf(createTlsServer({ cert: cert!, key: key! }));
    expect(kindOf(await errorOf(`https://127.0.0.1:${untrusted}/`))).toBe('unreachable');
    const bare = await portOf(createTlsServer({}));
    expect(kindOf(await errorOf(`https://127.0.0.1:${bare}/`))).toBe('unreachable');
  });

  test('a connection that ends after the request was sent is lost', async () => {
    const port = await portOf(createServer((request) => request.socket.destroy()));
    expect(kindOf(await errorOf(`http://127.0.0.1:${port}/`))).toBe('lost');
  });
});

const coded = (code: string, more: object = {}): Error =>
  new TypeError('fetch failed', { cause: Object.assign(new Error('x'), { code, ...more }) });

test.each([
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'CERT_NOT_YET_VALID',
  'CERT_REVOKED',
  'INVALID_PURPOSE',
  'HOSTNAME_MISMATCH',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'ERR_TLS_HANDSHAKE_TIMEOUT',
  'EPROTO',
  'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
  'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE',
  'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE',
  'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
  'ERR_SSL_TLSV1_UNRECOGNIZED_NAME',
  'EAI_FAIL',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_INVALID_CHAR',
])('a call that fails with %s was not sent', (code) => {
  expect(kindOf(coded(code))).toBe('unreachable');
});

test.each([
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC',
  'ERR_SSL_SSLV3_ALERT_BAD_RECORD_MAC',
  'ERR_SSL_SSL/TLS_ALERT_BAD_RECORD_MAC',
  'ERR_SSL_PROTOCOL_IS_SHUTDOWN',
  'ERR_SSL_UNEXPECTED_EOF_WHILE_READING',
])('a call that fails with %s may have been sent', (code) => {
  expect(kindOf(coded(code))).toBe('lost');
});

test('a time-out of the connection was not sent, and one of the answer may have been', () => {
  expect(kindOf(coded('ETIMEDOUT', { syscall: 'connect' }))).toBe('unreachable');
  expect(kindOf(coded('ETIMEDOUT', { syscall: 'read' }))).toBe('lost');
});

test('an error of the AI SDK for a key that is missing, or for a call that the model does not support, was not sent', () => {
  for (const name of ['AI_LoadAPIKeyError', 'AI_UnsupportedFunctionalityError', 'AI_InvalidPromptError']) {
    expect(kindOf(Object.assign(new Error('x'), { name }))).toBe('unreachable');
  }
  expect(kindOf(Object.assign(new Error('x'), { name: 'AI_TypeValidationError' }))).toBe('lost');
});

test('an error of code that handles the answer may come after the call', () => {
  expect(kindOf(new TypeError("Cannot read properties of undefined (reading 'headers')"))).toBe('lost');
  expect(kindOf('a text')).toBe('lost');
});
