import { once } from 'node:events';
import { Agent, type ClientRequest, request } from 'node:http';
import { connect } from 'node:net';
import { json } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Limit, RateLimiter } from '../../src/index.js';
import { serve } from '../../src/server/serve.js';
import { Random } from '../../src/testing/conformance/kit/random.js';
import { SECRET } from '../support/server/request-server.js';

const KEY = { entityId: 'user-1', resource: 'gpt-4' };

async function start(slots: number) {
  const limits = [Limit.concurrent('slots', slots)];
  const limiter = await RateLimiter.open('memory:', { limits, leaseSecrets: [SECRET] });
  const server = await serve(limiter, { port: 0 });
  const held = async (): Promise<number> => slots - (await limiter.available(KEY))['slots'];
  const close = async (): Promise<void> => {
    await server.close();
    await limiter.close();
  };
  return { limiter, server, held, close, url: server.url, port: Number(new URL(server.url).port) };
}

type Started = Awaited<ReturnType<typeof start>>;

/** Clients that wait for one slot, each over a connection of its own. One that gets the slot gives it back. */
class Clients {
  readonly waiting = new Set<ClientRequest>();
  readonly #endings: Promise<void>[] = [];
  answered = 0;
  destroyed = 0;

  constructor(started: Started, count: number, keepAlive: boolean) {
    for (let at = 0; at < count; at += 1) this.#endings.push(this.#ask(started, keepAlive));
  }

  async #ask({ url, limiter }: Started, keepAlive: boolean): Promise<void> {
    const client = request(`${url}/v1/acquire`, { method: 'POST', agent: new Agent({ keepAlive }) });
    this.waiting.add(client);
    const outcome = new Promise<(() => Promise<void>) | null>((resolve) => {
      client.on('error', () => resolve(null));
      client.on('response', (response) => {
        // From here on the client has the slot, and it is the client's duty to give it back.
        this.waiting.delete(client);
        this.answered += 1;
        resolve(async () => {
          const { lease } = (await json(response)) as { readonly lease: { readonly token: string } };
          await (await limiter.leases.resume(lease.token)).commit();
          client.destroy();
        });
      });
    });
    client.end(JSON.stringify({ ...KEY, consume: { slots: 1 }, wait: { timeoutMs: 60_000 } }));
    await (
      await outcome
    )?.();
  }

  destroy(client: ClientRequest): void {
    if (!this.waiting.delete(client)) return;
    this.destroyed += 1;
    client.destroy();
  }

  async ended(): Promise<void> {
    await Promise.all(this.#endings);
  }
}

const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

test.each([
  [1, true],
  [2, false],
])(
  '1,000 waiting clients that disconnect while slots are handed over leave no slot, no hold and no timer (seed %i, connection kept: %s)',
  async (seed, keepAlive) => {
    const timersBefore = timers();
    const random = new Random(20_261_116 + seed);
    const started = await start(8);
    const { limiter, held, close } = started;
    const depth = (): number => limiter.waiting().reduce((sum, line) => sum + line.depth, 0);
    const first = await Promise.all(
      Array.from({ length: 8 }, () => limiter.acquire({ ...KEY, consume: { slots: 1 } })),
    );
    const clients = new Clients(started, 1_000, keepAlive);
    await expect.poll(depth).toBe(1_000);
    // From here on each slot goes from client to client, while clients of random places in the queue disconnect.
    for (const lease of first) await lease.commit();
    const order = [...clients.waiting].map((client) => ({ client, at: random.whole(1, 1_000_000) }));
    for (const { client } of order.toSorted((a, b) => a.at - b.at)) {
      clients.destroy(client);
      if (random.whole(1, 10) <= 3) await turn();
    }
    await clients.ended();
    expect(clients.answered + clients.destroyed).toBe(1_000);
    expect(Math.min(clients.answered, clients.destroyed)).toBeGreaterThan(8);
    await expect.poll(held).toBe(0);
    expect(depth()).toBe(0);
    expect((await limiter.leases.list()).items).toEqual([]);
    await close();
    await expect.poll(timers).toBe(timersBefore);
  },
);

const body = JSON.stringify({ ...KEY, consume: { slots: 1 } });
const askWith = (field: string): string =>
  `POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\n${field}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

test('clients that disconnect right after they have asked, without a wait, leave no slot', async () => {
  const { port, limiter, held, close } = await start(200);
  for (let at = 0; at < 200; at += 1) {
    const socket = connect(port, '127.0.0.1', () => socket.write(askWith('Accept: */*'), () => socket.destroy()));
    await once(socket, 'close');
  }
  await expect.poll(held).toBe(0);
  expect((await limiter.leases.list()).items).toEqual([]);
  await close();
});

test('a client that has read the answer keeps its slot, however it closes its connection', async () => {
  const { port, server, limiter, held } = await start(8);
  for (const closing of ['end', 'destroy'] as const) {
    for (const field of ['Connection: keep-alive', 'Connection: close']) {
      const socket = connect(port, '127.0.0.1', () => socket.write(askWith(field)));
      await once(socket, 'data');
      const closed = once(socket, 'close');
      socket[closing]();
      await closed;
    }
  }
  // A server that has closed has seen the end of each connection, and has given back what it would.
  await server.close();
  expect(await held()).toBe(4);
  await limiter.close();
});
