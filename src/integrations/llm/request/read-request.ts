import type { Endpoint } from './endpoints.js';
import type { LlmApi, SizedCall } from './llm-call.js';
import { boundOfInput } from './input-bound.js';
import { sizeOfPrompt } from './prompt-size.js';

export type Fields = Readonly<Record<string, unknown>>;

/** The fields that a model reads, by API. */
const PROMPT: Readonly<Record<LlmApi, readonly string[]>> = {
  'openai-chat': ['messages', 'tools', 'functions', 'response_format'],
  'openai-completions': ['prompt', 'suffix'],
  'openai-responses': ['input', 'instructions', 'tools', 'text'],
  'openai-embeddings': ['input'],
  anthropic: ['system', 'messages', 'tools'],
  google: ['contents', 'systemInstruction', 'system_instruction', 'tools'],
  'google-embeddings': ['content', 'requests'],
};

/** A call as the body of its request describes it. A body that is no JSON object has a size of zero. */
export function readRequest(endpoint: Endpoint, body: Fields | null): SizedCall {
  const { api } = endpoint;
  const fields = body ?? {};
  const call = {
    api,
    model: endpoint.model ?? text(fields['model']) ?? 'unknown',
    stream: endpoint.stream ?? fields['stream'] === true,
    user: userIn(fields),
  };
  const prompt = sizeOfPrompt(PROMPT[api].map((name) => fields[name]));
  return { call, prompt, maxInputTokens: boundOfInput(fields), maxOutputTokens: maxOutputIn(api, fields) };
}

/** The body as an object; null: it is not one. */
export function parseBody(body: string): Fields | null {
  try {
    const parsed: unknown = JSON.parse(body);
    return isFields(parsed) ? parsed : null;
  } catch {
    return null;
  }
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function maxOutputIn(api: LlmApi, fields: Fields): number | null {
  switch (api) {
    case 'openai-embeddings':
    case 'google-embeddings':
      return 0;
    case 'openai-responses':
      return count(fields['max_output_tokens']);
    case 'anthropic':
      return count(fields['max_tokens']);
    case 'google': {
      const config = fields['generationConfig'] ?? fields['generation_config'];
      if (!isFields(config)) return null;
      return times(count(config['maxOutputTokens'] ?? config['max_output_tokens']), config['candidateCount']);
    }
    case 'openai-chat':
      return times(count(fields['max_completion_tokens']) ?? count(fields['max_tokens']), fields['n']);
    case 'openai-completions': {
      const choices = Math.max(count(fields['n']) ?? 1, count(fields['best_of']) ?? 1);
      return times(count(fields['max_tokens']), choices * promptsIn(fields['prompt']));
    }
  }
}

/** The maximum of a request is for each of its choices. */
function times(each: number | null, choices: unknown): number | null {
  return each === null ? null : each * Math.max(1, count(choices) ?? 1);
}

/** A completion may have a list of prompts: of texts, or of lists of token ids. */
function promptsIn(prompt: unknown): number {
  return Array.isArray(prompt) && typeof prompt[0] !== 'number' ? prompt.length : 1;
}

function userIn(fields: Fields): string | null {
  const { metadata } = fields;
  const inMetadata = isFields(metadata) ? text(metadata['user_id']) : null;
  return text(fields['safety_identifier']) ?? text(fields['user']) ?? inMetadata;
}

function count(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
