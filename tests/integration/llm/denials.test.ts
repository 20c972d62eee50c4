import { afterEach, describe, expect, test } from 'vitest';
import { Limit } from '../../../src/core/limit.js';
import { limitFetch } from '../../../src/integrations/llm/index.js';
import { fakeClock } from '../../../src/testing/fake-clock.js';
import { APIS, callOf, ENTITY, type LlmWorld, llmWorld, MODEL } from '../../support/llm/world.js';

let world: LlmWorld;
afterEach(async () => world[Symbol.asyncDispose]());

const open = async (limits: readonly Limit[], waitMs = 0, clock = fakeClock()): Promise<LlmWorld> =>
  (world = await llmWorld({ limits, clock, fetch: { waitMs, measures: { rpm: 'calls' } } }));

describe('denials of limitFetch', () => {
  test.each(APIS)(
    'a denied call of %s is answered with 429 and its exact wait, without a call of the provider',
    async (api) => {
      const { fetch, provider } = await open([Limit.perMinute('rpm', 2)]);
      for (let call = 0; call < 2; call++) await (await fetch(...callOf(api, provider.url))).text();
      const denied = await fetch(...callOf(api, provider.url));
      expect(denied.status).toBe(429);
      expect(Object.fromEntries(denied.headers)).toMatchObject({
        'retry-after-ms': '30000',
        'retry-after': '30',
        ratelimit: '"rpm";r=0;t=30',
        'x-headgate-reason': 'exhausted',
      });
      expect(denied.headers.get('x-should-retry')).toBe(null);
      expect(await denied.json()).toMatchObject({ error: { message: expect.stringContaining('Rate limit exceeded') } });
      expect(provider.calls).toHaveLength(2);
    },
  );

  test('a wait above a minute also says that the client must not retry, because the client of OpenAI would retry early', async () => {
    const { fetch, provider, limiter } = await open([Limit.perMinute('rpm', 2)]);
    await limiter.pause({ entityId: ENTITY, resource: MODEL, forMs: 60_001, reason: 'test' });
    const denied = await fetch(...callOf('chat', provider.url));
    expect([denied.status, denied.headers.get('retry-after-ms'), denied.headers.get('x-should-retry')]).toEqual([
      429,
      '60001',
      'false',
    ]);
  });

  test('a call that is larger than a limit is answered with 422, and a paused entity with 403', async () => {
    const { fetch, provider, limiter } = await open([Limit.perMinute('rpm', 0)]);
    const impossible = await fetch(...callOf('chat', provider.url));
    expect([impossible.status, impossible.headers.get('x-should-retry')]).toEqual([422, 'false']);
    await limiter.pause({ entityId: ENTITY, forMs: 'forever', reason: 'revoked' });
    const paused = await fetch(...callOf('chat', provider.url));
    expect([paused.status, paused.headers.get('x-should-retry')]).toEqual([403, 'false']);
  });

  test('a maximum beyond every amount is larger than a limit too, not an error of the program', async () => {
    const { provider, limiter } = await open([Limit.perMinute('tpm', 1_000)]);
    const prices = { [MODEL]: { input: 1, output: 1_000_000 } };
    for (const measure of ['tokens', 'microdollars'] as const) {
      const limited = limitFetch(fetch, { limiter, entityId: ENTITY, measures: { tpm: measure }, prices });
      for (const max of [1e13, Number.MAX_SAFE_INTEGER]) {
        expect((await limited(...callOf('chat', provider.url, { max }))).status).toBe(422);
      }
    }
    expect(provider.calls).toEqual([]);
  });

  test('a call waits for its limits for up to waitMs', async () => {
    const clock = fakeClock();
    const { fetch, provider } = await open([Limit.perMinute('rpm', 1)], 60_000, clock);
    await (await fetch(...callOf('chat', provider.url))).text();
    const waiting = fetch(...callOf('chat', provider.url));
    await expect.poll(() => clock.sleepers).toBeGreaterThan(0);
    expect(provider.calls).toHaveLength(1);
    await clock.advance(60_000);
    expect((await waiting).status).toBe(200);
  });

  test('of calls at the same time, no more pass than the tokens allow, and a denied one costs no request', async () => {
    const limits = [Limit.perDay('rpm', 1_000), Limit.perDay('tpm', 44 * 5)];
    const measures = { rpm: 'calls', tpm: 'tokens' } as const;
    world = await llmWorld({ limits, clock: fakeClock(), fetch: { waitMs: 0, measures } });
    const { fetch, provider, consumed } = world;
    const answers = await Promise.all(Array.from({ length: 20 }, () => fetch(...callOf('chat', provider.url))));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5);
    expect((await consumed()).rpm).toBe(5);
    await Promise.all(answers.map((answer) => answer.text()));
    await fetch.settled();
  });

  test('a wrong option is refused with its name', async () => {
    await open([Limit.perMinute('rpm', 1)]);
    await expect(llmWorld({ fetch: { waitMs: -1 } })).rejects.toThrow('waitMs');
    await expect(llmWorld({ fetch: { measures: { tpm: 'words' as 'tokens' } } })).rejects.toThrow('measures.tpm');
    await expect(llmWorld({ fetch: { measures: { money: 'microdollars' } } })).rejects.toThrow('prices');
    await expect(llmWorld({ fetch: { wiatMs: 1 } as object })).rejects.toThrow('wiatMs');
  });

  test('a model without a price is refused where a limit counts money, and only there', async () => {
    const prices = { other: { input: 1, output: 1 } };
    world = await llmWorld({ fetch: { prices } });
    await (await world.fetch(...callOf('chat', world.provider.url))).text();
    const limits = [Limit.perDay('budget', 1_000)];
    await using counted = await llmWorld({ limits, fetch: { prices, measures: { budget: 'microdollars' } } });
    await expect(counted.fetch(...callOf('chat', counted.provider.url))).rejects.toThrow('prices');
    expect(counted.provider.calls).toEqual([]);
  });

  test('a limit that no level has is an error of the program, not a denial', async () => {
    world = await llmWorld({ fetch: { measures: { tmp: 'tokens' } } });
    await expect(world.fetch(...callOf('chat', world.provider.url))).rejects.toMatchObject({ code: 'input.invalid' });
  });
});
