import type { LlmApi } from './llm-call.js';

/** An address that answers calls of a model. */
export interface Endpoint {
  readonly api: LlmApi;
  /** The model, where the address names it; null: the body does. */
  readonly model: string | null;
  /** Whether the address asks for a stream; null: the body says so. */
  readonly stream: boolean | null;
}

const BY_SUFFIX: readonly (readonly [suffix: string, api: LlmApi])[] = [
  ['/chat/completions', 'openai-chat'],
  ['/completions', 'openai-completions'],
  ['/responses', 'openai-responses'],
  ['/embeddings', 'openai-embeddings'],
  ['/messages', 'anthropic'],
];

const GOOGLE = /\/([^/]+):(generateContent|streamGenerateContent|embedContent|batchEmbedContents)$/;
const AZURE = /\/deployments\/([^/]+)\//;

/** Finds out what an address answers by the end of its path, because proxies and vendors put other paths before it. */
export function readEndpoint(path: string): Endpoint | null {
  const google = GOOGLE.exec(path);
  if (google !== null) {
    const [, model = '', method = ''] = google;
    const api = /embed/i.test(method) ? 'google-embeddings' : 'google';
    return { api, model: decode(model), stream: method === 'streamGenerateContent' };
  }
  const api = BY_SUFFIX.find(([suffix]) => path.endsWith(suffix))?.[1];
  if (api === undefined) return null;
  const deployment = AZURE.exec(path)?.[1];
  return { api, model: deployment === undefined ? null : decode(deployment), stream: null };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
