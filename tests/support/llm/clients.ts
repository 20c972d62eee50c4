import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { AI_SDK_CLIENTS, type Client, type ClientCall } from './ai-sdk-clients.js';
import { KEY, MODEL } from './world.js';

async function readAll(chunks: AsyncIterable<unknown>, onChunk: () => boolean): Promise<void> {
  for await (const _ of chunks) if (!onChunk()) return;
}

const openai = ({ url, fetch: send }: ClientCall): OpenAI =>
  new OpenAI({ apiKey: KEY, baseURL: `${url}/v1`, fetch: send, maxRetries: 0 });

const openAiChat: Client = async (call) => {
  const { prompt, max, stream, signal, onChunk } = call;
  const body = {
    model: MODEL,
    messages: [{ role: 'user' as const, content: prompt }],
    ...(max === undefined ? {} : { max_completion_tokens: max }),
  };
  if (!stream) await openai(call).chat.completions.create(body, { signal });
  else await readAll(await openai(call).chat.completions.create({ ...body, stream: true }, { signal }), onChunk);
};

const openAiResponses: Client = async (call) => {
  const { prompt, max, stream, signal, onChunk } = call;
  const body = { model: MODEL, input: prompt, ...(max === undefined ? {} : { max_output_tokens: max }) };
  if (!stream) await openai(call).responses.create(body, { signal });
  else await readAll(await openai(call).responses.create({ ...body, stream: true }, { signal }), onChunk);
};

/** The API of Anthropic requires a maximum. */
const DEFAULT_MAX = 60;

const anthropic: Client = async ({ url, fetch: send, prompt, max, stream, signal, onChunk }) => {
  const client = new Anthropic({ apiKey: KEY, baseURL: url, fetch: send, maxRetries: 0 });
  const body = { model: MODEL, max_tokens: max ?? DEFAULT_MAX, messages: [{ role: 'user' as const, content: prompt }] };
  if (!stream) await client.messages.create(body, { signal });
  else await readAll(await client.messages.create({ ...body, stream: true }, { signal }), onChunk);
};

const google: Client = async ({ url, fetch: send, prompt, max, stream, signal, onChunk }) => {
  const client = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: url, fetch: send } });
  const request = {
    model: MODEL,
    contents: prompt,
    config: { ...(max === undefined ? {} : { maxOutputTokens: max }), abortSignal: signal },
  };
  if (!stream) await client.models.generateContent(request);
  else await readAll(await client.models.generateContentStream(request), onChunk);
};

export async function embedWithOpenAi(url: string, send: typeof fetch): Promise<void> {
  const client = new OpenAI({ apiKey: KEY, baseURL: `${url}/v1`, fetch: send, maxRetries: 0 });
  await client.embeddings.create({ model: MODEL, input: ['one two', 'three'], encoding_format: 'float' });
}

export async function embedWithGoogle(url: string, send: typeof fetch): Promise<void> {
  const client = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: url, fetch: send } });
  await client.models.embedContent({ model: MODEL, contents: ['one two', 'three'] });
}

/** The real clients, by the API that they speak. */
export const CLIENTS: Readonly<Record<string, Client>> = {
  'openai chat': openAiChat,
  'openai responses': openAiResponses,
  anthropic,
  google,
  ...AI_SDK_CLIENTS,
};
