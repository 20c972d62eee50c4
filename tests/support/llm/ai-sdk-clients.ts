import { generateText as generateText6, streamText as streamText6 } from 'ai6';
import { createAnthropic as createAnthropic6 } from 'ai6-anthropic';
import { createGoogleGenerativeAI as createGoogle6 } from 'ai6-google';
import { createOpenAI as createOpenAI6 } from 'ai6-openai';
import { generateText as generateText7, streamText as streamText7 } from 'ai7';
import { createAnthropic as createAnthropic7 } from 'ai7-anthropic';
import { createGoogleGenerativeAI as createGoogle7 } from 'ai7-google';
import { createOpenAI as createOpenAI7 } from 'ai7-openai';
import { KEY, MODEL } from './world.js';

export interface ClientCall {
  readonly url: string;
  readonly fetch: typeof fetch;
  readonly prompt: string;
  /** undefined: the request states none. */
  readonly max: number | undefined;
  readonly stream: boolean;
  readonly signal: AbortSignal;
  /** Called with each chunk of a stream. False: the caller stops reading. */
  readonly onChunk: () => boolean;
}

export type Client = (call: ClientCall) => Promise<void>;

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

type Model6 = Parameters<typeof generateText6>[0]['model'];
type Model7 = Parameters<typeof generateText7>[0]['model'];

interface Settings {
  readonly apiKey: string;
  readonly baseURL: string;
  readonly fetch: typeof fetch;
}

const ai6 =
  (path: string, modelOf: (settings: Settings) => Model6): Client =>
  async ({ url, fetch: send, prompt, max, stream, signal, onChunk }) => {
    const model = modelOf({ apiKey: KEY, baseURL: `${url}${path}`, fetch: send });
    const request = {
      model,
      prompt,
      ...(max === undefined ? {} : { maxOutputTokens: max }),
      maxRetries: 0,
      abortSignal: signal,
    };
    if (!stream) await generateText6(request);
    else await readParts(streamText6({ ...request, onError: () => {} }).fullStream, onChunk);
  };

const ai7 =
  (path: string, modelOf: (settings: Settings) => Model7): Client =>
  async ({ url, fetch: send, prompt, max, stream, signal, onChunk }) => {
    const model = modelOf({ apiKey: KEY, baseURL: `${url}${path}`, fetch: send });
    const request = {
      model,
      prompt,
      ...(max === undefined ? {} : { maxOutputTokens: max }),
      maxRetries: 0,
      abortSignal: signal,
    };
    if (!stream) await generateText7(request);
    else await readParts(streamText7({ ...request, onError: () => {} }).fullStream, onChunk);
  };

/** ai 6 and ai 7 with their providers, by the API that they speak. */
export const AI_SDK_CLIENTS: Readonly<Record<string, Client>> = {
  'ai 6 chat': ai6('/v1', (settings) => createOpenAI6(settings).chat(MODEL)),
  'ai 6 responses': ai6('/v1', (settings) => createOpenAI6(settings).responses(MODEL)),
  'ai 6 anthropic': ai6('/v1', (settings) => createAnthropic6(settings)(MODEL)),
  'ai 6 google': ai6('/v1beta', (settings) => createGoogle6(settings)(MODEL)),
  'ai 7 chat': ai7('/v1', (settings) => createOpenAI7(settings).chat(MODEL)),
  'ai 7 responses': ai7('/v1', (settings) => createOpenAI7(settings).responses(MODEL)),
  'ai 7 anthropic': ai7('/v1', (settings) => createAnthropic7(settings)(MODEL)),
  'ai 7 google': ai7('/v1beta', (settings) => createGoogle7(settings)(MODEL)),
};
