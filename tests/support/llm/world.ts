import { memory } from '../../../src/backends/embedded/memory.js';
import type { Clock } from '../../../src/clock.js';
import { Limit } from '../../../src/core/limit.js';
import { limitFetch, type LimitedFetch, type LimitFetchOptions } from '../../../src/integrations/llm/index.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { renderEvent, streamedAnswer } from '../../../src/testing/provider/answers.js';
import { type Provider, type ProviderOptions, startProvider, wordsIn } from '../../../src/testing/provider/index.js';

const CAPACITY = 1_000_000;
export const SLOTS = 50;
export const ENTITY = 'team';
export const MODEL = 'test-model';
/** A secret that must be in no output. */
export const KEY = 'sk-live-4f7a9c-do-not-print';

export const LIMITS = [Limit.perDay('rpm', CAPACITY), Limit.perDay('tpm', CAPACITY), Limit.concurrent('slots', SLOTS)];

export interface LlmWorld extends AsyncDisposable {
  readonly provider: Provider;
  readonly limiter: RateLimiter;
  readonly fetch: LimitedFetch;
  /** Failures that reached a handler of the limiter or of `limitFetch`. */
  readonly errors: string[];
  /** What was consumed, and the slots that are held. */
  consumed(resource?: string): Promise<{ readonly rpm: number; readonly tpm: number; readonly slots: number }>;
}

export interface LlmWorldOptions {
  readonly provider?: ProviderOptions;
  readonly clock?: Clock;
  readonly limits?: readonly Limit[];
  readonly fetch?: Partial<LimitFetchOptions>;
  /** False: the input is estimated by its characters. Default: words are counted, as the provider does. */
  readonly countsWords?: boolean;
  /** In place of the `fetch` of the process. */
  readonly send?: typeof fetch;
}

/** A simulated provider, a limiter in memory, and a `fetch` under its limits. Nothing refills within a test. */
export async function llmWorld(options: LlmWorldOptions = {}): Promise<LlmWorld> {
  const provider = await startProvider(options.provider);
  const errors: string[] = [];
  const onError = (error: unknown, where: string): void => {
    errors.push(`${where}: ${String(error)}`);
  };
  const clock = options.clock === undefined ? {} : { clock: options.clock };
  const limiter = await RateLimiter.open(memory(), { limits: options.limits ?? LIMITS, onError, ...clock });
  const limited = limitFetch(options.send ?? fetch, {
    limiter,
    entityId: ENTITY,
    measures: { rpm: 'calls', tpm: 'tokens', slots: 'calls' },
    ...(options.countsWords === false ? {} : { countTokens: wordsIn }),
    onError,
    ...clock,
    ...options.fetch,
  });
  return {
    provider,
    limiter,
    fetch: limited,
    errors,
    consumed: async (resource = MODEL) => consumedOf(limiter, ENTITY, resource),
    [Symbol.asyncDispose]: async () => {
      await limiter.close();
      await provider.stop();
    },
  };
}

export async function consumedOf(limiter: RateLimiter, entityId: string, resource: string) {
  const bucket = await limiter.buckets.get({ entityId, resource });
  const of = (name: string): number => bucket?.limits.find(({ limit }) => limit.name === name)?.consumed ?? 0;
  const free = bucket?.limits.find(({ limit }) => limit.name === 'slots')?.available ?? SLOTS;
  return { rpm: of('rpm'), tpm: of('tpm'), slots: SLOTS - free };
}

export type Api = 'chat' | 'responses' | 'anthropic' | 'google';
export const APIS: readonly Api[] = ['chat', 'responses', 'anthropic', 'google'];

/** The names of the APIs in the simulated provider. */
const PROVIDER_APIS = {
  chat: 'openai-chat',
  responses: 'openai-responses',
  anthropic: 'anthropic',
  google: 'google',
} as const;

/** The events of a streamed answer, without a server: as many of `text` as tokens, and those that end it. */
export function eventsOf(api: Api, tokens: number, text: string) {
  const asked = {
    model: MODEL,
    stream: true,
    inputTokens: 3,
    maxOutputTokens: null,
    includesUsage: true,
    callId: null,
  };
  const { before, token, after } = streamedAnswer({ ...asked, api: PROVIDER_APIS[api] }, tokens);
  const piece = renderEvent(token).replaceAll('word ', text);
  const begun = [...before.map(renderEvent), ...Array.from({ length: tokens }, () => piece)];
  return { begun, ends: after.map(renderEvent) };
}

/** An answer whose events are made as they are read. `onPull`: called for each of them. */
export function streamOf(events: readonly string[], onPull: () => void = () => {}): Response {
  const left = events.values();
  const pull = (made: ReadableStreamDefaultController<Uint8Array>): void => {
    const { value } = left.next();
    if (value === undefined) made.close();
    else made.enqueue(new TextEncoder().encode(value));
    onPull();
  };
  const body = new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

/** The arguments of a `fetch` that calls the model with a prompt. */
export function callOf(api: Api, url: string, { prompt = 'one two three', max = 40, stream = false } = {}) {
  const messages = [{ role: 'user', content: prompt }];
  const [path, body] = {
    chat: ['/v1/chat/completions', { model: MODEL, messages, max_tokens: max, stream }],
    responses: ['/v1/responses', { model: MODEL, input: prompt, max_output_tokens: max, stream }],
    anthropic: ['/v1/messages', { model: MODEL, messages, max_tokens: max, stream }],
    google: [
      `/v1beta/models/${MODEL}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
      { contents: [{ role: 'user', parts: [{ text: prompt }] }], generationConfig: { maxOutputTokens: max } },
    ],
  }[api] as [string, object];
  const headers = { 'content-type': 'application/json', authorization: 'Bearer sk-test' };
  return [`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) }] as const;
}

/** What the provider has counted, over all calls that it did not refuse. */
export function servedBy({ calls }: Provider): number {
  return calls.reduce(
    (sum, { status, inputTokens, outputTokens }) => sum + (status === 200 ? inputTokens + outputTokens : 0),
    0,
  );
}
