import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fakeClock } from '../fake-clock.js';
import { startProvider } from './provider.js';
import { Quotas } from './quota.js';

const post = (url: string, path: string, body: object): Promise<Response> =>
  fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(body) });
const CHAT = { model: 'm', messages: [{ content: 'one two three' }], max_tokens: 5 };

describe('the quota of the simulated provider', () => {
  test('an ask that is repeated after the stated wait fits, and one that is repeated 1 ms earlier does not', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 1, max: 900 }), (tokensPerSecond, tokens) => {
        const of = (): Quotas => {
          const quotas = new Quotas({ tokensPerSecond, burst: 1_000 });
          quotas.take('key', 1_000, 0);
          return quotas;
        };
        const waitMs = of().take('key', tokens, 0);
        expect(of().take('key', tokens, waitMs)).toBe(0);
        if (waitMs > 1) expect(of().take('key', tokens, waitMs - 1)).toBeGreaterThan(0);
      }),
    );
  });

  test('a call beyond the quota is refused with the wait, and each key has a quota of its own', async () => {
    const clock = fakeClock();
    await using provider = await startProvider({ clock, quota: { tokensPerSecond: 4, burst: 8 } });
    const call = async (key: string): Promise<Response> =>
      fetch(`${provider.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify(CHAT),
      });
    expect((await call('a')).status).toBe(200);
    const refused = await call('a');
    expect([refused.status, refused.headers.get('retry-after-ms')]).toEqual([429, '2000']);
    expect((await call('b')).status).toBe(200);
    clock.set(clock.now() + 2_000);
    expect((await call('a')).status).toBe(200);
    expect(provider.calls.map(({ end }) => end)).toEqual(['complete', 'refused', 'complete', 'complete']);
  });
});

describe('the calls of the simulated provider', () => {
  test('a word is a token, in the prompt and in the answer', async () => {
    await using provider = await startProvider();
    const { usage } = (await (await post(provider.url, '/v1/chat/completions', CHAT)).json()) as { usage: object };
    expect(usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 5 });
    expect(provider.calls).toMatchObject([{ api: 'openai-chat', inputTokens: 3, outputTokens: 5, end: 'complete' }]);
  });

  test('embeddings have no output, and take only their input from the quota', async () => {
    await using provider = await startProvider({ quota: { tokensPerSecond: 1, burst: 4 } });
    const { status } = await post(provider.url, '/v1/embeddings', { model: 'm', input: 'one two three' });
    const google = await post(provider.url, '/v1beta/models/g:embedContent', {
      content: { parts: [{ text: 'four' }] },
    });
    expect([status, google.status]).toEqual([200, 200]);
    expect(provider.calls.map(({ inputTokens, outputTokens }) => [inputTokens, outputTokens])).toEqual([
      [3, 0],
      [1, 0],
    ]);
  });

  test('a stream that its client aborts counts the tokens that were made before', async () => {
    const clock = fakeClock();
    await using provider = await startProvider({ clock, plan: () => ({ outputTokens: 5_000, tokenDelayMs: 10 }) });
    const controller = new AbortController();
    const init = { method: 'POST', body: JSON.stringify({ ...CHAT, stream: true }), signal: controller.signal };
    const response = await fetch(`${provider.url}/v1/messages`, init);
    await response.body?.getReader().read();
    await expect.poll(() => clock.sleepers).toBe(1);
    controller.abort();
    while (provider.running > 0) await clock.advance(10);
    const [call] = provider.calls;
    expect(call?.end).toBe('aborted');
    expect(call?.outputTokens).toBeLessThan(5_000);
  });

  test('an address that no provider has is not found', async () => {
    await using provider = await startProvider();
    expect((await post(provider.url, '/v1/nothing', {})).status).toBe(404);
    expect((await fetch(`${provider.url}/v1/models`)).status).toBe(200);
  });
});
