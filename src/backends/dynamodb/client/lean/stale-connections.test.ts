import { once } from 'node:events';
import { type AddressInfo, createServer, type LookupFunction, Socket } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { type HandTime, stopTimers, until } from '../../../../../tests/support/models/hand-time.js';
import { deadlineIn } from '../../../../machine-time.js';
import { failureOf } from '../failures.js';
import { Connections, headerLines } from './connections.js';
import { limitConnecting } from './dial.js';

/*
 * Connections that ended without news: the process was suspended, or the network forgot them. A gone connection either
 * answers nothing at all, or is reset when it is used.
 */

const LINES = headerLines(['host', 'dynamodb.test']);
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}';
const cleanUps: (() => void)[] = [];
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp();
});

type Serve = (socket: Socket) => void;

/** A store that answers each request by `serve`. */
class Store {
  /** In the order of their arrival. */
  readonly sockets: Socket[] = [];
  serve: Serve = (socket) => socket.write(ANSWER);
  requests = 0;
  readonly #server = createServer((socket) => {
    this.sockets.push(socket);
    socket.on('error', () => {});
    socket.on('data', () => {
      this.requests += 1;
      this.serve(socket);
    });
  });

  async open(lookup?: LookupFunction): Promise<Connections> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const { port } = this.#server.address() as AddressInfo;
    const host = lookup === undefined ? '127.0.0.1' : 'dynamodb.test';
    const connections = new Connections(
      new URL(`http://${host}:${port}`),
      null,
      lookup === undefined ? {} : { lookup },
    );
    cleanUps.push(() => {
      connections.close();
      for (const socket of this.sockets) socket.destroy();
      this.#server.close();
    });
    return connections;
  }

  /** Makes as many idle connections, all of which answer by `serve` from then on, while new ones work. */
  async idle(connections: Connections, count: number, serve: Serve): Promise<void> {
    const held: Socket[] = [];
    this.serve = (socket) => void held.push(socket);
    const posts = Array.from({ length: count }, async () => post(connections));
    await until(() => held.length === count);
    for (const socket of held) socket.write(ANSWER);
    await Promise.all(posts);
    this.serve = (socket) => (held.includes(socket) ? serve(socket) : socket.write(ANSWER));
    this.requests = 0;
  }
}

const post = async (connections: Connections, ms = 20_000) => connections.post(LINES, '{}', deadlineIn(ms));
const failureBy = async (sending: Promise<unknown>) =>
  failureOf(await sending.catch((error: unknown) => error), 'UpdateItem', 'table');
const silent: Serve = () => {};
const reset: Serve = (socket) => socket.resetAndDestroy();

/** The clocks stand, and `passWall` moves only the one of the wall. */
function stopClocks(): HandTime & { passWall(ms: number): void } {
  const time = stopTimers();
  let wallMs = Date.now();
  const wall = vi.spyOn(Date, 'now').mockImplementation(() => wallMs);
  return {
    pass: time.pass,
    passWall: (ms) => void (wallMs += ms),
    [Symbol.dispose]() {
      wall.mockRestore();
      time[Symbol.dispose]();
    },
  };
}

test.each(['monotonic', 'wall'] as const)(
  'after a pause of more than 30 s by the %s clock, requests use new connections, and none is lost',
  async (clock) => {
    using time = stopClocks();
    const store = new Store();
    const connections = await store.open();
    await store.idle(connections, 5, silent);
    time[clock === 'wall' ? 'passWall' : 'pass'](30_001);
    for (let sent = 0; sent < 5; sent++) expect((await post(connections)).status).toBe(200);
    expect(store.sockets).toHaveLength(6);
  },
);

test('after the wall clock was set back by more than 30 s, requests use new connections', async () => {
  using time = stopClocks();
  const store = new Store();
  const connections = await store.open();
  await store.idle(connections, 2, silent);
  time.passWall(-30_001);
  expect((await post(connections)).status).toBe(200);
});

test('connections that are idle for 30 s at most are used again', async () => {
  using time = stopClocks();
  const store = new Store();
  const connections = await store.open();
  await store.idle(connections, 2, (socket) => socket.write(ANSWER));
  time.pass(30_000);
  time.passWall(30_000);
  for (let sent = 0; sent < 5; sent++) await post(connections);
  expect(store.sockets).toHaveLength(2);
});

test('of connections that fell silent, one request is lost at its deadline, and the next ones use new connections', async () => {
  using time = stopTimers();
  const store = new Store();
  const connections = await store.open();
  await store.idle(connections, 5, silent);
  const lost = failureBy(post(connections, 200));
  await until(() => store.requests === 1);
  time.pass(200);
  expect(await lost).toMatchObject({ kind: 'lost', unsent: false, error: { kind: 'timeout' } });
  for (let sent = 0; sent < 5; sent++) expect((await post(connections)).status).toBe(200);
  expect(store.sockets).toHaveLength(6);
});

test.each([
  ['reset', reset],
  ['ended', (socket: Socket) => socket.end()],
] as const)('of connections that are %s when they are used, one request is lost', async (_, serve) => {
  const store = new Store();
  const connections = await store.open();
  await store.idle(connections, 5, serve);
  expect(await failureBy(post(connections))).toMatchObject({ kind: 'lost', error: { kind: 'connection' } });
  for (let sent = 0; sent < 5; sent++) expect((await post(connections)).status).toBe(200);
});

test('connections that answered after the silent request was sent are kept', async () => {
  using time = stopTimers();
  const store = new Store();
  const connections = await store.open();
  await store.idle(connections, 3, (socket) => socket.write(ANSWER));
  let isFirst = true;
  const { serve } = store;
  store.serve = (socket) => (isFirst ? (isFirst = false) : serve(socket));
  const lost = failureBy(post(connections, 200));
  await until(() => store.requests === 1);
  time.pass(100);
  await Promise.all([post(connections), post(connections)]);
  time.pass(100);
  expect(await lost).toMatchObject({ kind: 'lost' });
  await Promise.all([post(connections), post(connections)]);
  expect(store.sockets).toHaveLength(3);
});

test('a request that opens a connection is sent over another one that becomes free earlier', async () => {
  const lookups: (() => void)[] = [];
  const store = new Store();
  const connections = await store.open((_, options, done) => {
    const answer = (): void =>
      options.all === true ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4);
    lookups.push(answer);
  });
  store.serve = silent;
  const first = post(connections);
  lookups.shift()?.();
  await until(() => store.requests === 1);
  store.serve = (socket) => socket.write(ANSWER);
  // The connection of the second request is not established until the end of the test.
  const second = post(connections);
  store.sockets[0]?.write(ANSWER);
  await Promise.all([first, second]);
  expect(store.sockets).toHaveLength(1);
  lookups.shift()?.();
  await until(() => store.sockets.length === 2);
  const both = await Promise.all([post(connections), post(connections)]);
  expect(both.map(({ status }) => status)).toEqual([200, 200]);
  expect(store.sockets).toHaveLength(2);
});

test('each address of a host has 500 ms to connect', () => {
  using time = stopTimers();
  const socket = limitConnecting(new Socket(), 'dynamodb.test');
  const errors: Error[] = [];
  socket.on('error', (error) => errors.push(error));
  for (let address = 1; address <= 3; address++) {
    socket.emit('connectionAttempt');
    time.pass(499);
    expect(socket.destroyed).toBe(false);
  }
  time.pass(1);
  expect(socket.destroyed).toBe(true);
});
