import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { createOpenAI as createOpenAI6 } from 'ai6-openai';
import { createOpenAI as createOpenAI7 } from 'ai7-openai';
import { generateText as generateText6, streamText as streamText6 } from 'ai6';
import { generateText as generateText7, streamText as streamText7 } from 'ai7';
import OpenAI from 'openai';
import { MODEL } from './world.js';

/** A secret that must be in no output. */
export const KEY = 'sk-live-4f7a9c-do-not-print';

export interface ClientCall {
  readonly url: string;
  readonly fetch: typeof fetch;
  readonly prompt: string;
  readonly max: number;
  readonly stream: boolean;
  readonly signal: AbortSignal;
  /** Called with each chunk of a stream. False: the caller stops reading. */
  readonly onChunk: () => boolean;
}

type Client = (call: ClientCall) => Promise<void>;

async function readAll(chunks: AsyncIterable<unknown>, onChunk: () => boolean): Promise<void> {
  for await (const _ of chunks) if (!onChunk()) return;
}

const openai = ({ url, fetch: send }: ClientCall): OpenAI =>
  new OpenAI({ apiKey: KEY, baseURL: `${url}/v1`, fetch: send, maxRetries: 0 });

const openAiChat: Client = async (call) => {
  const { prompt, max, stream, signal, onChunk } = call;
  const body = { model: MODEL, messages: [{ role: 'user' as const, content: prompt }], max_completion_tokens: max };
  if (!stream) await openai(call).chat.completions.create(body, { signal });
  else await readAll(await openai(call).chat.completions.create({ ...body, stream: true }, { signal }), onChunk);
};

const openAiResponses: Client = async (call) => {
  const { prompt, max, stream, signal, onChunk } = call;
  const body = { model: MODEL, input: prompt, max_output_tokens: max };
  if (!stream) await openai(call).responses.create(body, { signal });
  else await readAll(await openai(call).responses.create({ ...body, stream: true }, { signal }), onChunk);
};

const anthropic: Client = async ({ url, fetch: send, prompt, max, stream, signal, onChunk }) => {
  const client = new Anthropic({ apiKey: KEY, baseURL: url, fetch: send, maxRetries: 0 });
  const body = { model: MODEL, max_tokens: max, messages: [{ role: 'user' as const, content: prompt }] };
  if (!stream) await client.messages.create(body, { signal });
  else await readAll(await client.messages.create({ ...body, stream: true }, { signal }), onChunk);
};

const google: Client = async ({ url, fetch: send, prompt, max, stream, signal, onChunk }) => {
  const client = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: url, fetch: send } });
  const request = { model: MODEL, contents: prompt, config: { maxOutputTokens: max, abortSignal: signal } };
  if (!stream) await client.models.generateContent(request);
  else await readAll(await client.models.generateContentStream(request), onChunk);
};

const ai6 =
  (api: 'chat' | 'responses'): Client =>
  async ({ url, fetch: send, prompt, max, stream, signal, onChunk }) => {
    const model = createOpenAI6({ apiKey: KEY, baseURL: `${url}/v1`, fetch: send })[api](MODEL);
    const request = { model, prompt, maxOutputTokens: max, maxRetries: 0, abortSignal: signal };
    if (!stream) await generateText6(request);
    else await readParts(streamText6({ ...request, onError: () => {} }).fullStream, onChunk);
  };

const ai7 =
  (api: 'chat' | 'responses'): Client =>
  async ({ url, fetch: send, prompt, max, stream, signal, onChunk }) => {
    const model = createOpenAI7({ apiKey: KEY, baseURL: `${url}/v1`, fetch: send })[api](MODEL);
    const request = { model, prompt, maxOutputTokens: max, maxRetries: 0, abortSignal: signal };
    if (!stream) await generateText7(request);
    else await readParts(streamText7({ ...request, onError: () => {} }).fullStream, onChunk);
  };

export async function embedWithOpenAi(url: string, send: typeof fetch): Promise<void> {
  const client = new OpenAI({ apiKey: KEY, baseURL: `${url}/v1`, fetch: send, maxRetries: 0 });
  await client.embeddings.create({ model: MODEL, input: ['one two', 'three'], encoding_format: 'float' });
}

export async function embedWithGoogle(url: string, send: typeof fetch): Promise<void> {
  const client = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: url, fetch: send } });
  await client.models.embedContent({ model: MODEL, contents: ['one two', 'three'] });
}

/** The AI SDK reports failures as parts of the stream. */
export async function readParts(
  parts: AsyncIterable<{ readonly type: string; readonly error?: unknown }>,
  onChunk: () => boolean,
): Promise<void> {
  for await (const part of parts) {
    if (part.type === 'error') throw part.error;
    if (part.type === 'abort') throw new Error('aborted');
    if (part.type === 'text-delta' && !onChunk()) return;
  }
}

/** The real clients, by the API that they speak. */
export const CLIENTS: Readonly<Record<string, Client>> = {
  'openai chat': openAiChat,
  'openai responses': openAiResponses,
  anthropic,
  google,
  'ai 6 chat': ai6('chat'),
  'ai 6 responses': ai6('responses'),
  'ai 7 chat': ai7('chat'),
  'ai 7 responses': ai7('responses'),
};
