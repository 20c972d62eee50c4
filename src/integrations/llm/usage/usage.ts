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

/**
 * What a provider states; null: nothing. `unreadable`: it states something that is no count of tokens, so that the cost
 * is not known.
 */
export type StatedUsage = Usage | 'unreadable' | null;

/** What one JSON text says: an answer, or an event of a stream. */
export interface UsageNews {
  readonly usage: StatedUsage;
  /** Whether the usage will not change any more. */
  readonly isFinal: boolean;
  /** Whether the answer has ended. A body that a proxy cuts may look complete. */
  readonly isLast: boolean;
}

export const NO_USAGE: Usage = { inputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0 };

const NOTHING: UsageNews = { usage: null, isFinal: false, isLast: true };

const wanted = (
  paths: readonly string[],
  counted: readonly string[],
  countedWhole: readonly string[] = [],
  endings: readonly string[] = [],
): WantedMembers => ({
  paths: new Set(paths),
  counted: new Set(counted),
  countedWhole: new Set(countedWhole),
  endings: new Set(endings),
});

const CHAT = wanted(
  ['usage', 'choices'],
  ['content', 'reasoning_content', 'reasoning', 'refusal', 'name', 'arguments', 'text'],
  [],
  ['finish_reason'],
);

/** The members that state the usage, those that contain the output, and those that say that it has ended. */
export const USAGE_MEMBERS: Readonly<Record<LlmApi, WantedMembers>> = {
  'openai-chat': CHAT,
  'openai-completions': CHAT,
  'openai-embeddings': wanted(['usage'], []),
  'openai-responses': wanted(['type', 'usage', 'response.usage'], ['delta']),
  anthropic: wanted(['type', 'usage', 'message.usage'], ['text', 'thinking', 'name', 'partial_json'], ['input']),
  google: wanted(['usageMetadata'], ['text'], ['functionCall'], ['finishReason', 'blockReason']),
  'google-embeddings': wanted(['usageMetadata'], []),
};

/** Reads the usage of a complete JSON answer. */
export function readAnswer(api: LlmApi, members: JsonMembers, before: Usage | null): UsageNews {
  const isGoogle = api === 'google' || api === 'google-embeddings';
  const stated = members.value(isGoogle ? 'usageMetadata' : 'usage');
  const isLast = !members.isOpen;
  return { usage: readUsage(api, stated, before), isFinal: isLast, isLast };
}

/** Reads one event of a stream. `before`: what earlier events said. */
export function readEvent(api: LlmApi, members: JsonMembers, before: Usage | null): UsageNews {
  switch (api) {
    case 'openai-responses': {
      const type = members.value('type');
      const isFinal = typeof type === 'string' && /^response\.(?:completed|incomplete|failed)$/.test(type);
      return { usage: readUsage(api, members.value('response.usage'), before), isFinal, isLast: isFinal };
    }
    case 'anthropic': {
      const type = members.value('type');
      if (type === 'message_stop') return { usage: null, isFinal: before !== null, isLast: true };
      return {
        usage: readUsage(api, members.value('usage') ?? members.value('message.usage'), before),
        isFinal: false,
        isLast: false,
      };
    }
    case 'google':
      return {
        usage: readUsage(api, members.value('usageMetadata'), before),
        isFinal: false,
        isLast: members.hasEnding,
      };
    case 'openai-chat':
    case 'openai-completions': {
      const isFinal = isUsageChunk(members);
      return { usage: readUsage(api, members.value('usage'), before), isFinal, isLast: isFinal || members.hasEnding };
    }
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

/** The counts that the cost depends on, by the names of all APIs. */
const COUNTS = [
  'prompt_tokens',
  'input_tokens',
  'completion_tokens',
  'output_tokens',
  'total_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'promptTokenCount',
  'toolUsePromptTokenCount',
  'candidatesTokenCount',
  'thoughtsTokenCount',
  'totalTokenCount',
] as const;

/** Counts that are missing keep what was stated before. */
function readUsage(api: LlmApi, stated: unknown, before: Usage | null): StatedUsage {
  if (!isObject(stated)) return null;
  const counts = COUNTS.map((name) => stated[name]).filter((value) => value !== undefined && value !== null);
  if (counts.length === 0) return null;
  if (counts.some((value) => tokenCount(value) === null)) return 'unreadable';
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
  const inputTokens = tokenCount(stated['prompt_tokens'] ?? stated['input_tokens']) ?? before.inputTokens;
  const total = tokenCount(stated['total_tokens']);
  const output = tokenCount(stated['completion_tokens'] ?? stated['output_tokens']);
  return {
    inputTokens,
    cachedInputTokens: tokenCount(details['cached_tokens']) ?? before.cachedInputTokens,
    cacheWriteTokens: tokenCount(details['cache_write_tokens']) ?? before.cacheWriteTokens,
    // Embeddings state no output. Some vendors, such as xAI, count the reasoning only in the total.
    outputTokens: Math.max(
      output ?? (total === null ? before.outputTokens : 0),
      total === null ? 0 : total - inputTokens,
    ),
  };
}

/**
 * The counts of the cache are not part of `input_tokens`. Counts are cumulative: a later event that states only some of them,
 * or 0 as vendors of the same API do, takes nothing back.
 */
function readAnthropic(stated: Counts, before: Usage): Usage {
  const most = (name: string, known: number): number => Math.max(known, tokenCount(stated[name]) ?? 0);
  const uncached = most('input_tokens', before.inputTokens - before.cachedInputTokens - before.cacheWriteTokens);
  const cachedInputTokens = most('cache_read_input_tokens', before.cachedInputTokens);
  const cacheWriteTokens = most('cache_creation_input_tokens', before.cacheWriteTokens);
  return {
    inputTokens: uncached + cachedInputTokens + cacheWriteTokens,
    cachedInputTokens,
    cacheWriteTokens,
    outputTokens: most('output_tokens', before.outputTokens),
  };
}

/** Thoughts are billed as output. The prompts of tools are part of the total only. */
function readGoogle(stated: Counts, before: Usage): Usage {
  const prompt = tokenCount(stated['promptTokenCount']);
  const tools = tokenCount(stated['toolUsePromptTokenCount']) ?? 0;
  const inputTokens = prompt === null ? before.inputTokens : prompt + tools;
  const candidates = tokenCount(stated['candidatesTokenCount']);
  const thoughts = tokenCount(stated['thoughtsTokenCount']);
  const total = tokenCount(stated['totalTokenCount']);
  const parts = candidates === null && thoughts === null ? before.outputTokens : (candidates ?? 0) + (thoughts ?? 0);
  return {
    inputTokens,
    cachedInputTokens: tokenCount(stated['cachedContentTokenCount']) ?? before.cachedInputTokens,
    cacheWriteTokens: 0,
    outputTokens: Math.max(parts, total === null ? 0 : total - inputTokens),
  };
}

/** No call has as many. What a provider states beyond this is an error, and must not charge an entity for years. */
const MAX_COUNT = 1e9;

/** null: no count, or none that can be true. Some vendors write it as a text. */
export function tokenCount(value: unknown): number | null {
  const count = typeof value === 'string' && /^\d{1,10}$/.test(value) ? Number(value) : value;
  return typeof count === 'number' && Number.isInteger(count) && count >= 0 && count <= MAX_COUNT ? count : null;
}

function isObject(value: unknown): value is Counts {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function objectIn(value: unknown): Counts {
  return isObject(value) ? value : {};
}
