import type { LlmApi } from '../request/llm-call.js';
import type { JsonMembers, WantedMembers } from './json-members.js';

/** The tokens of one call, as its provider counts them. */
export interface Usage {
  /** All input tokens, cached ones included. */
  readonly inputTokens: number;
  /** The part of the input that came from the provider's cache. */
  readonly cachedInputTokens: number;
  /** The part of the input that was written to the provider's cache. */
  readonly cacheWriteTokens: number;
  /** All output tokens, reasoning included. */
  readonly outputTokens: number;
}

/** What one JSON text says: an answer, or an event of a stream. */
export interface UsageNews {
  /** null: nothing new. */
  readonly usage: Usage | null;
  /** Whether the usage will not change any more. */
  readonly isFinal: boolean;
}

export const NO_USAGE: Usage = { inputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0 };

const NOTHING: UsageNews = { usage: null, isFinal: false };

const wanted = (paths: readonly string[], counted: readonly string[]): WantedMembers => ({
  paths: new Set(paths),
  counted: new Set(counted),
});

const CHAT = wanted(
  ['usage', 'choices'],
  ['content', 'reasoning_content', 'reasoning', 'refusal', 'arguments', 'text'],
);

/** The members that state the usage, and those that contain the output. */
export const USAGE_MEMBERS: Readonly<Record<LlmApi, WantedMembers>> = {
  'openai-chat': CHAT,
  'openai-completions': CHAT,
  'openai-embeddings': wanted(['usage'], []),
  'openai-responses': wanted(['type', 'usage', 'response.usage'], ['delta']),
  anthropic: wanted(['type', 'usage', 'message.usage'], ['text', 'thinking', 'partial_json']),
  google: wanted(['usageMetadata'], ['text']),
  'google-embeddings': wanted(['usageMetadata'], []),
};

/** Reads the usage of a complete JSON answer. */
export function readAnswer(api: LlmApi, members: JsonMembers, before: Usage | null): UsageNews {
  const isGoogle = api === 'google' || api === 'google-embeddings';
  const stated = members.value(isGoogle ? 'usageMetadata' : 'usage');
  return { usage: readUsage(api, stated, before), isFinal: true };
}

/** Reads one event of a stream. `before`: what earlier events said. */
export function readEvent(api: LlmApi, members: JsonMembers, before: Usage | null): UsageNews {
  switch (api) {
    case 'openai-responses': {
      const isFinal = /^response\.(?:completed|incomplete|failed)$/.test(String(members.value('type')));
      return { usage: readUsage(api, members.value('response.usage'), before), isFinal };
    }
    case 'anthropic': {
      const type = members.value('type');
      if (type === 'message_stop') return { usage: null, isFinal: before !== null };
      return {
        usage: readUsage(api, members.value('usage') ?? members.value('message.usage'), before),
        isFinal: false,
      };
    }
    case 'google':
      return { usage: readUsage(api, members.value('usageMetadata'), before), isFinal: false };
    case 'openai-chat':
    case 'openai-completions':
      return { usage: readUsage(api, members.value('usage'), before), isFinal: isUsageChunk(members) };
    case 'openai-embeddings':
    case 'google-embeddings':
      return NOTHING;
  }
}

/** The chunk that only states the usage, after the last choice. Some vendors state a usage so far in every chunk. */
export function isUsageChunk(members: JsonMembers): boolean {
  const choices = members.value('choices');
  return Array.isArray(choices) && choices.length === 0 && isObject(members.value('usage'));
}

/** Counts that are missing keep what was stated before; null: nothing is stated. */
function readUsage(api: LlmApi, stated: unknown, before: Usage | null): Usage | null {
  if (!isObject(stated)) return null;
  switch (api) {
    case 'anthropic':
      return readAnthropic(stated, before ?? NO_USAGE);
    case 'google':
    case 'google-embeddings':
      return readGoogle(stated, before ?? NO_USAGE);
    case 'openai-chat':
    case 'openai-completions':
    case 'openai-embeddings':
    case 'openai-responses':
      return readOpenAi(stated, before ?? NO_USAGE);
  }
}

type Counts = Readonly<Record<string, unknown>>;

/** The names of Chat Completions and of Responses. */
function readOpenAi(stated: Counts, before: Usage): Usage {
  const details = objectIn(stated['prompt_tokens_details'] ?? stated['input_tokens_details']);
  const inputTokens = count(stated['prompt_tokens'] ?? stated['input_tokens']) ?? before.inputTokens;
  const total = count(stated['total_tokens']);
  const output = count(stated['completion_tokens'] ?? stated['output_tokens']);
  return {
    inputTokens,
    cachedInputTokens: count(details['cached_tokens']) ?? before.cachedInputTokens,
    cacheWriteTokens: 0,
    // Embeddings state no output.
    outputTokens: output ?? (total === null ? before.outputTokens : Math.max(0, total - inputTokens)),
  };
}

/** The counts of the cache are not part of `input_tokens`. A later event may state only some of the counts. */
function readAnthropic(stated: Counts, before: Usage): Usage {
  const uncached = before.inputTokens - before.cachedInputTokens - before.cacheWriteTokens;
  const cachedInputTokens = count(stated['cache_read_input_tokens']) ?? before.cachedInputTokens;
  const cacheWriteTokens = count(stated['cache_creation_input_tokens']) ?? before.cacheWriteTokens;
  return {
    inputTokens: (count(stated['input_tokens']) ?? uncached) + cachedInputTokens + cacheWriteTokens,
    cachedInputTokens,
    cacheWriteTokens,
    outputTokens: count(stated['output_tokens']) ?? before.outputTokens,
  };
}

/** Thoughts are billed as output. The prompts of tools are part of the total only. */
function readGoogle(stated: Counts, before: Usage): Usage {
  const prompt = count(stated['promptTokenCount']);
  const tools = count(stated['toolUsePromptTokenCount']) ?? 0;
  const inputTokens = prompt === null ? before.inputTokens : prompt + tools;
  const candidates = count(stated['candidatesTokenCount']);
  const thoughts = count(stated['thoughtsTokenCount']);
  const total = count(stated['totalTokenCount']);
  const parts = candidates === null && thoughts === null ? before.outputTokens : (candidates ?? 0) + (thoughts ?? 0);
  return {
    inputTokens,
    cachedInputTokens: count(stated['cachedContentTokenCount']) ?? before.cachedInputTokens,
    cacheWriteTokens: 0,
    outputTokens: Math.max(parts, total === null ? 0 : total - inputTokens),
  };
}

function count(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

function isObject(value: unknown): value is Counts {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function objectIn(value: unknown): Counts {
  return isObject(value) ? value : {};
}
