import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { stopTimers, until } from '../../../../../tests/support/models/hand-time.js';
import { deadlineIn } from '../../../../machine-time.js';
import { failureOf } from '../failures.js';
import { Connection } from './connection.js';
import { Connections, headerLines } from './connections.js';

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
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const sending = new Promise((resolve, reject) => {
    const text = 'POST / HTTP/1.1\r\nhost: dynamodb.test\r\ncontent-length: 2\r\n\r\n{}';
    const user = { free: () => {}, gone: () => {}, ended: () => {} };
    new Connection(user, { text, encoding: 'latin1', deadline: deadlineIn(20_000), resolve, reject }).attach(
      socket,
      'connect',
    );
  }).catch((error: unknown) => error);
  await until(() => requests === 1);
  socket.destroy(Object.assign(new Error(`read ${code}`), { code }));
  expect(failureOf(await sending, 'UpdateItem', 'table')).toMatchObject({ kind: 'lost', error: { kind } });
  server.close().closeAllConnections();
});

describe('the connections to one endpoint', () => {
  const LINES = headerLines(['host', 'dynamodb.test']);
  const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n';
  const cleanUps: (() => void)[] = [];
  afterEach(() => {
    for (const cleanUp of cleanUps.splice(0)) cleanUp();
  });

  /** A server that hands each connection and the text that arrives on it to `serve`. */
  async function openTo(serve: (socket: Socket, text: string) => void): Promise<Connections> {
    const sockets = new Set<Socket>();
    const server = createTcpServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('data', (bytes) => serve(socket, bytes.toString()));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const connections = new Connections(new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), null);
    cleanUps.push(() => {
      connections.close();
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    return connections;
  }

  const post = async (connections: Connections, ms = 20_000) => connections.post(LINES, '{}', deadlineIn(ms));

  test('bytes that arrive without a request are not taken for the next answer', async () => {
    let served = 0;
    let ended = 0;
    const connections = await openTo((socket) => {
      served += 1;
      socket.on('close', () => (ended += 1));
      socket.write(`${ANSWER}${served}!`);
      if (served === 1) setImmediate(() => socket.write(`${ANSWER}no`));
    });
    expect((await post(connections)).body.toString()).toBe('1!');
    await until(() => ended === 1);
    expect((await post(connections)).body.toString()).toBe('2!');
  });

  test('a connection that the server ended while it was idle is not used for the next request', async () => {
    let ended = 0;
    const connections = await openTo((socket) => {
      socket.on('close', () => (ended += 1));
      socket.end(`${ANSWER}{}`);
    });
    await post(connections);
    await until(() => ended === 1);
    expect((await post(connections)).status).toBe(200);
  });

  test('an answer that is not HTTP is a lost answer', async () => {
    const connections = await openTo((socket) => socket.write('SSH-2.0-OpenSSH\r\n\r\n'));
    const failure = failureOf(await post(connections).catch((error: unknown) => error), 'UpdateItem', 'table');
    expect(failure).toMatchObject({ kind: 'lost', error: { kind: 'connection' } });
  });

  test('a request that finds all 256 connections in use waits for one, and is not sent after its deadline', async () => {
    using time = stopTimers();
    const held: Socket[] = [];
    const connections = await openTo((socket) => void held.push(socket));
    const first = Array.from({ length: 256 }, async () => post(connections));
    await until(() => held.length === 256);
    const [late, waiting] = [post(connections, 20).catch((error: unknown) => error), post(connections)];
    time.pass(20);
    expect(failureOf(await late, 'UpdateItem', 'table')).toMatchObject({ kind: 'lost', unsent: true });
    for (const socket of held.slice(0, 256)) socket.write(`${ANSWER}{}`);
    await Promise.all(first);
    await until(() => held.length === 257);
    held[256]?.write(`${ANSWER}{}`);
    expect((await waiting).status).toBe(200);
  });

  test('a request whose connection is closed before it is established is lost and unsent, as every later one', async () => {
    let served = 0;
    const connections = await openTo((socket) => {
      served += 1;
      socket.write(`${ANSWER}{}`);
    });
    const sending = post(connections).catch((error: unknown) => error);
    connections.close();
    for (const error of [await sending, await post(connections).catch((late: unknown) => late)]) {
      expect(failureOf(error, 'UpdateItem', 'table')).toMatchObject({
        kind: 'lost',
        unsent: true,
        error: { kind: 'connection' },
      });
    }
    expect(served).toBe(0);
  });

  test.each(['9'.repeat(400), '99999999999', '1000000', '999999', '60', 'x', ''])(
    'a server that keeps idle connections for %j seconds gets the next request on the same connection',
    async (seconds) => {
      const sockets = new Set<Socket>();
      const connections = await openTo((socket) => {
        sockets.add(socket);
        socket.write(ANSWER.replace('OK', `OK\r\nKeep-Alive: timeout=${seconds}, max=1000`) + '{}');
      });
      for (let sent = 0; sent < 3; sent++) expect((await post(connections)).status).toBe(200);
      expect(sockets.size).toBe(1);
    },
  );

  test('a server that keeps idle connections for 0 seconds gets each request on a new connection', async () => {
    const sockets = new Set<Socket>();
    const connections = await openTo((socket) => {
      sockets.add(socket);
      socket.write(ANSWER.replace('OK', 'OK\r\nKeep-Alive: timeout=0') + '{}');
    });
    for (let sent = 0; sent < 3; sent++) expect((await post(connections)).status).toBe(200);
    expect(sockets.size).toBe(3);
  });

  test('an answer without an end is lost after 32 MB, and its connection is closed', async () => {
    let closed = 0;
    const connections = await openTo((socket) => {
      const chunk = Buffer.alloc(2 ** 20, 'a');
      socket.on('close', () => (closed += 1));
      socket.on('drain', () => more());
      const more = (): void => {
        while (!socket.destroyed && socket.write(`100000\r\n${chunk.toString()}\r\n`));
      };
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      more();
    });
    const failure = failureOf(await post(connections).catch((error: unknown) => error), 'UpdateItem', 'table');
    expect(failure).toMatchObject({ kind: 'lost', error: { kind: 'connection' } });
    expect(failure).not.toMatchObject({ unsent: true });
    await until(() => closed === 1);
  });

  test('a body with any characters arrives with its length in bytes', async () => {
    const arrived: string[] = [];
    const connections = await openTo((socket, text) => {
      arrived.push(text);
      socket.write(`${ANSWER}{}`);
    });
    for (const body of ['{"a":"b"}', '{"a":"\u00e9"}', '{"a":"\u20ac\u{1f600}"}']) {
      await connections.post(LINES, body, deadlineIn(20_000));
      expect(arrived.pop()?.endsWith(`\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)).toBe(true);
    }
  });
});

test.each(['a\r\nx-b: c', 'a\nb', 'a\0', '\u00e9'])('a header with the value %j is refused', (value) => {
  expect(() => headerLines(['host', value])).toThrow(TypeError);
});
