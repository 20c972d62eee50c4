import { generateText as generateText6, streamText as streamText6, wrapLanguageModel as wrap6 } from 'ai6';
import { createOpenAI as createOpenAI6 } from 'ai6-openai';
import { generateText as generateText7, streamText as streamText7, wrapLanguageModel as wrap7 } from 'ai7';
import { createOpenAI as createOpenAI7 } from 'ai7-openai';
import type { ModelLimits } from '../../../src/integrations/llm/index.js';
import { readParts } from './ai-sdk-clients.js';
import { KEY, MODEL } from './world.js';

/** One call through `limitModel`. */
export interface ModelCall {
  readonly stream: boolean;
  readonly signal?: AbortSignal;
  readonly onChunk?: () => boolean;
}

export type Ask = (url: string, limits: ModelLimits, call: ModelCall) => Promise<void>;

const REQUEST = { prompt: 'one two three', maxOutputTokens: 40, maxRetries: 0 } as const;

const ai6: Ask = async (url, middleware, { stream, signal, onChunk = () => true }) => {
  const model = wrap6({ model: createOpenAI6({ apiKey: KEY, baseURL: `${url}/v1` }).chat(MODEL), middleware });
  const request = { model, ...REQUEST, ...(signal === undefined ? {} : { abortSignal: signal }) };
  if (!stream) await generateText6(request);
  else await readParts(streamText6({ ...request, onError: () => {} }).fullStream, onChunk);
};

const ai7: Ask = async (url, middleware, { stream, signal, onChunk = () => true }) => {
  const model = wrap7({ model: createOpenAI7({ apiKey: KEY, baseURL: `${url}/v1` }).responses(MODEL), middleware });
  const request = { model, ...REQUEST, ...(signal === undefined ? {} : { abortSignal: signal }) };
  if (!stream) await generateText7(request);
  else await readParts(streamText7({ ...request, onError: () => {} }).fullStream, onChunk);
};

/** The models of ai 6 and ai 7 under `limitModel`. */
export const LIMITED_MODELS: Readonly<Record<string, Ask>> = { 'ai 6': ai6, 'ai 7': ai7 };
