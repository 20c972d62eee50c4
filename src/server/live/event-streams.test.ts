import { describe, expect, test } from 'vitest';
import { credentialOf, requestServer } from '../../../tests/support/server/request-server.js';
import { EventHub } from './event-hub.js';

describe('event streams of a server', () => {
  const [web, jobs] = [credentialOf(), credentialOf()];
  const tokens = [web.token, jobs.token];

  /** An event costs time for each open stream, and any client with a token can open streams. */
  test('are at most maxEventStreams, half of them of one token; a further one is answered 503', async () => {
    const { send } = await requestServer({ tokens, maxEventStreams: 4 });
    const open = (as = web) => send('GET /v1/events', { as });
    for (const as of [web, web, jobs]) expect((await open(as)).status).toBe(200);
    const refused = await open();
    expect([refused.status, await refused.json()]).toMatchObject([
      503,
      {
        type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
        title: 'The server is busy',
        code: 'server.busy',
        detail: '2 event streams of the token are open at this server: close one, or try later',
      },
    ]);
    expect((await open(jobs)).status).toBe(200);
    const full = await requestServer({ maxEventStreams: 1 });
    expect((await full.send('GET /v1/events')).status).toBe(200);
    expect(await (await full.send('GET /v1/events')).json()).toMatchObject({
      detail: '1 event streams are open at this server: close one, or try later',
    });
  });

  test('make room when a client leaves, cancels, or asks for the head only, once each', async () => {
    const events = new EventHub();
    const { send } = await requestServer({ events, tokens, maxEventStreams: 2 });
    const open = (signal?: AbortSignal) => send('GET /v1/events', { as: web, ...(signal && { signal }) });
    const client = new AbortController();
    await open(client.signal);
    expect((await open()).status).toBe(503);
    client.abort();
    const second = await open();
    expect(second.status).toBe(200);
    await second.body?.cancel();
    expect((await send('HEAD /v1/events', { as: web })).status).toBe(200);
    expect((await open(AbortSignal.abort())).status).toBe(200);
    expect((await open()).status).toBe(200);
    expect((await open()).status).toBe(503);
    events.close();
    expect((await open()).status).toBe(200);
  });

  test('a server does not start with a wrong maxEventStreams', async () => {
    await expect(requestServer({ maxEventStreams: -1 })).rejects.toThrow('maxEventStreams');
  });
});
