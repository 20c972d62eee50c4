import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Queue } from '../../examples/worker-queue.js';
import { type Provider, startProvider } from '../../src/testing/provider/index.js';

const MODEL = 'gpt-4o-mini';
const SETTINGS = ['OPENAI_API_KEY', 'OPENAI_BASE_URL'] as const;
const before = SETTINGS.map((name) => process.env[name]);
let provider: Provider;
/** Makes the next call of the model fail. */
let isDown = false;

beforeAll(async () => {
  provider = await startProvider({ plan: () => (isDown ? { status: 500 } : {}) });
  process.env['OPENAI_API_KEY'] = 'sk-example';
  process.env['OPENAI_BASE_URL'] = `${provider.url}/v1`;
});
afterAll(async () => {
  for (const [at, name] of SETTINGS.entries()) {
    const value = before[at];
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  await provider.stop();
});

/** What the provider has counted for the last call. */
const lastCost = (): number => {
  const { inputTokens, outputTokens } = provider.calls.at(-1)!;
  return inputTokens + outputTokens;
};

test('the streaming example settles what the provider counts, and a caller that leaves early holds no slot', async () => {
  const { answer, limited, limiter } = await import('../../examples/openai-streaming.js');
  const consumed = async (user: string) => {
    const bucket = await limiter.buckets.get({ entityId: user, resource: MODEL });
    return Object.fromEntries(bucket!.limits.map(({ limit, consumed: amount }) => [limit.name, amount]));
  };
  let text = '';
  for await (const piece of answer('ada', 'Why is the sky blue?')) text += piece;
  expect(text).toContain('word word');
  await limited.settled();
  expect(await consumed('ada')).toMatchObject({ rpm: 1, tpm: lastCost() });

  for await (const _ of answer('bob', 'Why is the sky blue?')) break;
  await limited.settled();
  expect((await consumed('bob'))['tpm']).toBeGreaterThan(300);
  expect((await limiter.leases.list()).items).toEqual([]);
  await limiter.close();
});

test('the example of the AI SDK counts tokens and money', async () => {
  const { limiter, limits, summarise, tell } = await import('../../examples/ai-sdk.js');
  expect(await summarise('a long text')).toContain('word');
  await limits.settled();
  const first = lastCost();
  for await (const piece of tell('rain', new AbortController().signal)) expect(piece).toBe('word ');
  await limits.settled();
  const bucket = await limiter.buckets.get({ entityId: 'team-search', resource: MODEL });
  const [tokens, money] = bucket!.limits.map(({ consumed }) => consumed);
  expect(tokens).toBe(first + lastCost());
  // 16 words of output cost 9.6 micro-dollars, and each input token 0.15.
  expect(money).toBeGreaterThanOrEqual(20);
  await limiter.close();
});

test('a lease travels with a job: a failed attempt is repeated, and the job is charged once with its real cost', async () => {
  const { enqueue, openLimiter, work } = await import('../../examples/worker-queue.js');
  const folder = mkdtempSync(join(tmpdir(), 'headgate-queue-'));
  const store = `file:${join(folder, 'limits.db')}`;
  const [web, worker] = [openLimiter(store), openLimiter(store)];
  const messages: string[] = [];
  const queue: Queue = {
    send: async (message) => void messages.push(message),
    receive: async (handle) => {
      await handle(messages[0]!);
      messages.shift();
    },
  };
  await enqueue(web, queue, 'ada', 'Why is the sky blue?');
  expect((await web.leases.list()).items).toMatchObject([{ amounts: { jobs: 1 }, portable: true }]);
  const [sent] = messages;
  isDown = true;
  await expect(work(worker, queue)).rejects.toThrow('500');
  isDown = false;
  await work(worker, queue);
  const bucket = await web.buckets.get({ entityId: 'ada', resource: MODEL });
  expect(bucket?.limits.map(({ limit, consumed, available }) => [limit.name, consumed, available])).toMatchObject([
    ['tpm', lastCost(), expect.any(Number)],
    ['jobs', expect.any(Number), 10],
  ]);
  // The queue delivers the message once more: the lease has ended, and the model is not called.
  const calls = provider.calls.length;
  messages.push(sent!);
  await work(worker, queue);
  expect(provider.calls).toHaveLength(calls);
  await web.close();
  await worker.close();
  rmSync(folder, { recursive: true });
});
