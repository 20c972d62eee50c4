import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { until } from '../../../../../tests/support/models/hand-time.js';
import { deadlineIn } from '../deadline.js';
import { failureOf } from '../failures.js';
import { Connections } from './connections.js';

test.each([
  ['EHOSTUNREACH', 'connection'],
  ['ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC', 'connection'],
  ['CERT_HAS_EXPIRED', 'connection'],
  ['ENETUNREACH', 'connection'],
  ['ECONNRESET', 'connection'],
  ['ETIMEDOUT', 'timeout'],
])('%s of a connection over which the request was sent is a lost answer of kind %s', async (code, kind) => {
  let requests = 0;
  const server = createServer(() => (requests += 1)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const connections = new Connections(new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), null);
  const started: ReturnType<Connections['start']>[] = [];
  const start = connections.start.bind(connections);
  connections.start = (headers) => {
    const request = start(headers);
    started.push(request);
    return request;
  };
  const headers = ['host', 'dynamodb.test', 'content-length', '2'];
  const sending = connections.post(headers, '{}', deadlineIn(20_000)).catch((error: unknown) => error);
  await until(() => requests === 1);
  started[0]?.socket?.destroy(Object.assign(new Error(`read ${code}`), { code }));
  expect(failureOf(await sending, 'UpdateItem', 'table')).toMatchObject({ kind: 'lost', error: { kind } });
  connections.close();
  server.close().closeAllConnections();
});
