import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { ValidationError } from '../../core/errors.js';
import { type FaultProxy, startFaultProxy } from './fault-proxy.js';
import { readAll } from './forward.js';

/** A plain HTTP server instead of an engine, to test connections, missing dates and broken answers. */
let upstream: Server;
let proxy: FaultProxy;
let agent: Agent;

async function begin(answer: RequestListener): Promise<void> {
  upstream = createServer(answer).listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  proxy = await startFaultProxy(`http://127.0.0.1:${(upstream.address() as AddressInfo).port}`);
  agent = new Agent({ keepAlive: true });
}

afterEach(async () => {
  agent.destroy();
  await proxy.stop();
  upstream.closeAllConnections();
  upstream.close();
});

async function send(text: string): Promise<IncomingMessage & { readonly text: string; readonly reused: boolean }> {
  const sending = request(proxy.endpoint, { agent, method: 'POST', headers: { 'x-amz-target': 'D.Echo' } });
  sending.end(text);
  const [response] = (await once(sending, 'response')) as [IncomingMessage];
  return Object.assign(response, { text: String(await readAll(response)), reused: sending.reusedSocket });
}

test('the proxy keeps connections to the client and to the engine open', async () => {
  let connections = 0;
  await begin((incoming, outgoing) => incoming.pipe(outgoing));
  upstream.on('connection', () => (connections += 1));
  expect((await send('first')).text).toBe('first');
  for (const text of ['second', 'third']) expect(await send(text)).toMatchObject({ text, reused: true });
  expect(connections).toBe(1);
});

test('the proxy passes bodies of any size unchanged', async () => {
  await begin((incoming, outgoing) => incoming.pipe(outgoing));
  const text = 'ä€😀'.repeat(200_000);
  expect((await send(text)).text === text).toBe(true);
});

test('an answer without a date gets one', async () => {
  await begin((_incoming, outgoing) => {
    outgoing.sendDate = false;
    outgoing.end('{}');
  });
  expect(Date.parse((await send('')).headers.date ?? '')).not.toBeNaN();
});

test('a connection that the engine breaks is broken for the client too', async () => {
  await begin((incoming) => incoming.socket.destroy());
  await expect(send('{}')).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(proxy.requests.count('Echo')).toBe(1);
});

test.each(['127.0.0.1:8000', 'https://dynamodb.us-east-1.amazonaws.com'])('an engine at %s is refused', async (url) => {
  await begin((_incoming, outgoing) => outgoing.end());
  await expect(startFaultProxy(url)).rejects.toThrow(ValidationError);
});
