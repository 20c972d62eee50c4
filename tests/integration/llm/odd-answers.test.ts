import { getRequestListener } from '@hono/node-server';
import { afterEach, describe, expect, test } from 'vitest';
import { Limit } from '../../../src/core/limit.js';
import { fakeClock } from '../../../src/testing/fake-clock.js';
import {
  callOf,
  ENTITY,
  type LlmWorld,
  llmWorld,
  type LlmWorldOptions,
  MODEL,
  servedBy,
} from '../../support/llm/world.js';

let world: LlmWorld;
const open = async (options: LlmWorldOptions = {}): Promise<LlmWorld> => (world = await llmWorld(options));
afterEach(async () => world[Symbol.asyncDispose]());

const encode = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);

describe('a refusal whose body does not end', () => {
  test('pauses the key after a second, and is passed on whole', async () => {
    const clock = fakeClock();
    let source: ReadableStreamDefaultController<Uint8Array> | undefined;
    const body = new ReadableStream<Uint8Array>({ start: (made) => void (source = made) });
    source?.enqueue(encode('{"error":{"message":"try again in 20s"'));
    const send = async (): Promise<Response> => new Response(body, { status: 429 });
    const { fetch, limiter } = await open({ clock, send });
    const asked = fetch(...callOf('chat', 'http://provider.test'));
    // The body has its own timer beside that of its idle reader.
    await expect.poll(() => clock.sleepers).toBeGreaterThan(0);
    await clock.advance(1_000);
    const answer = await asked;
    const ask = { entityId: ENTITY, resource: MODEL, consume: { rpm: 1 } };
    expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: false, reason: 'paused', retryAfterMs: 20_000 });
    source?.enqueue(encode('}}'));
    source?.close();
    expect(await answer.text()).toBe('{"error":{"message":"try again in 20s"}}');
  });
});

test('an absurd wait of a provider pauses the key for a day at most', async () => {
  const send = async (): Promise<Response> =>
    new Response(null, { status: 429, headers: { 'retry-after': '999999999' } });
  const { fetch, limiter } = await open({ clock: fakeClock(), send });
  expect((await fetch(...callOf('chat', 'http://provider.test'))).status).toBe(429);
  const ask = { entityId: ENTITY, resource: MODEL, consume: { rpm: 1 } };
  expect(await limiter.tryAcquire(ask)).toMatchObject({ granted: false, reason: 'paused', retryAfterMs: 86_400_000 });
});

test('a stream whose content type is in capital letters is settled to its usage', async () => {
  const chunk = { choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } };
  const text = `data: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`;
  const headers = { 'content-type': 'TEXT/EVENT-STREAM; CHARSET=UTF-8' };
  const { fetch, consumed } = await open({ send: async () => new Response(text, { headers }) });
  const answer = await fetch(...callOf('chat', 'http://provider.test', { stream: true }));
  expect(await answer.text()).not.toContain('"usage"');
  await fetch.settled();
  expect(await consumed()).toEqual({ rpm: 1, tpm: 7, slots: 0 });
});

describe('characters of several bytes that are divided between chunks', () => {
  const hello = 'data: {"choices":[{"delta":{"content":"漢字 😀"}}]}\n\n';
  const usage = 'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}\n\n';
  const done = 'data: [DONE]\n\n';
  /** What the caller gets of a stream in chunks of this size, without and with the wish for the usage. */
  const passedOn = async (bytes: Uint8Array, size: number): Promise<readonly string[]> => {
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
      bytes.slice(at * size, (at + 1) * size),
    );
    const headers = { 'content-type': 'text/event-stream' };
    const { fetch } = await open({ send: async () => new Response(ReadableStream.from(chunks), { headers }) });
    const [url, init] = callOf('chat', 'http://provider.test', { stream: true });
    const asking = JSON.stringify({ ...JSON.parse(init.body), stream_options: { include_usage: true } });
    const texts = [await (await fetch(url, init)).text(), await (await fetch(url, { ...init, body: asking })).text()];
    await fetch.settled();
    return texts;
  };

  test.each([1, 2, 3, 5])('are passed on whole, in chunks of %i bytes', async (size) => {
    expect(await passedOn(encode(hello + usage + done), size)).toEqual([hello + done, hello + usage + done]);
    expect(await world.consumed()).toEqual({ rpm: 2, tpm: 14, slots: 0 });
  });

  test('are not left out where the stream is cut in the middle of one', async () => {
    const cut = encode(hello).slice(0, hello.indexOf('漢') + 1);
    const text = `${hello.slice(0, hello.indexOf('漢'))}\ufffd`;
    expect(await passedOn(cut, 8)).toEqual([text, text]);
  });
});

test('an answer keeps the length that its source states, unless the chunk with the usage is left out of it', async () => {
  const chunk = { choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } };
  const text = `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`;
  const headers = { 'content-type': 'text/event-stream', 'content-length': String(text.length), 'x-own': 'kept' };
  const { fetch } = await open({ send: async () => new Response(text, { headers }) });
  const lengthOf = async (options: object): Promise<readonly unknown[]> => {
    const [url, init] = callOf('chat', 'http://provider.test', { stream: true });
    const body = JSON.stringify({ ...JSON.parse(init.body), ...options });
    const answer = await fetch(url, { ...init, body });
    return [answer.headers.get('x-own'), answer.headers.get('content-length'), (await answer.text()).length];
  };
  expect(await lengthOf({ stream_options: { include_usage: true } })).toEqual(['kept', `${text.length}`, text.length]);
  expect(await lengthOf({})).toEqual(['kept', null, 'data: [DONE]\n\n'.length]);
});

test('a stream passes in an app of @hono/node-server too, whose own Response shares the headers that it is given', async () => {
  const { Request: ownRequest, Response: ownResponse } = globalThis;
  try {
    getRequestListener(() => new Response('ok'));
    const given = new Headers();
    expect(new Response('ok', { headers: given }).headers).toBe(given);
    const { fetch, provider, consumed } = await open();
    const answer = await fetch(...callOf('chat', provider.url, { stream: true }));
    expect(await answer.text()).not.toContain('prompt_tokens');
    await fetch.settled();
    expect(await consumed()).toEqual({ rpm: 1, tpm: servedBy(provider), slots: 0 });
  } finally {
    Object.defineProperty(globalThis, 'Request', { value: ownRequest });
    Object.defineProperty(globalThis, 'Response', { value: ownResponse });
  }
});

test.each([
  ['my gpt', 'ada lovelace', 'my%20gpt', 'ada%20lovelace'],
  ['_модель', '$root', '%5f%d0%bc%d0%be%d0%b4%d0%b5%d0%bb%d1%8c', '%24root'],
])('a call of the model %j by %j is limited, under an encoded name', async (model, user, resource, entityId) => {
  const answer = { choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } };
  const { fetch, limiter } = await open({
    limits: [Limit.perDay('rpm', 1), Limit.perDay('tpm', 100_000), Limit.concurrent('slots', 1)],
    send: async () => Response.json(answer),
    fetch: { entityId: ({ user: stated }) => stated ?? 'anonymous', waitMs: 0 },
  });
  const call = async (): Promise<number> => {
    const body = JSON.stringify({ model, user, messages: [], max_tokens: 5 });
    return (await fetch('http://provider.test/v1/chat/completions', { method: 'POST', body })).status;
  };
  expect(await call()).toBe(200);
  expect(await call()).toBe(429);
  expect((await limiter.buckets.list({ entityId })).items.map((bucket) => bucket.resource)).toEqual([resource]);
});

test('a fixed name that is not allowed is an error of the program', async () => {
  const { fetch } = await open({ fetch: { entityId: 'my team' } });
  await expect(fetch(...callOf('chat', world.provider.url))).rejects.toThrow('entityId');
});
