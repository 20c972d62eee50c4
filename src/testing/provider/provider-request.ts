/** The APIs of the simulated provider. */
export type ProviderApi =
  | 'openai-chat'
  | 'openai-responses'
  | 'openai-embeddings'
  | 'anthropic'
  | 'google'
  | 'google-embeddings';

/** A call as the simulated provider has read it. */
export interface ProviderRequest {
  readonly api: ProviderApi;
  readonly model: string;
  readonly stream: boolean;
  /** The words of the prompt: the provider counts a word as a token. */
  readonly inputTokens: number;
  readonly maxOutputTokens: number | null;
  /** Whether a streamed chat completion states its usage. */
  readonly includesUsage: boolean;
  /** The header `x-call-id`, with which a test recognises its call; null: none. */
  readonly callId: string | null;
}

type Fields = Readonly<Record<string, unknown>>;

const PROMPT = ['messages', 'input', 'instructions', 'system', 'contents', 'systemInstruction', 'content', 'requests'];
const GOOGLE = /\/models\/([^/]+):(generateContent|streamGenerateContent|embedContent|batchEmbedContents)$/;
/** They have no output. */
const EMBEDDINGS: ReadonlySet<ProviderApi> = new Set(['openai-embeddings', 'google-embeddings']);
const AZURE = /\/deployments\/([^/]+)\//;

/** The tokens of a text as the provider counts them: its words. */
export function wordsIn(text: string): number {
  return text.match(/\S+/g)?.length ?? 0;
}

/** null: the provider has no such address. */
export function readProviderRequest(path: string, fields: Fields, callId: string | null): ProviderRequest | null {
  const google = GOOGLE.exec(path);
  const api = google === null ? apiOf(path) : /embed/i.test(google[2] ?? '') ? 'google-embeddings' : 'google';
  if (api === null) return null;
  const config = objectIn(fields['generationConfig']);
  return {
    api,
    model: google?.[1] ?? AZURE.exec(path)?.[1] ?? String(fields['model']),
    stream: google === null ? fields['stream'] === true : google[2] === 'streamGenerateContent',
    inputTokens: PROMPT.reduce((sum, name) => sum + wordsOf(fields[name]), 0),
    maxOutputTokens: EMBEDDINGS.has(api)
      ? 0
      : firstNumber(
          fields['max_completion_tokens'],
          fields['max_output_tokens'],
          fields['max_tokens'],
          config['maxOutputTokens'],
        ),
    includesUsage: objectIn(fields['stream_options'])['include_usage'] === true,
    callId,
  };
}

function apiOf(path: string): ProviderApi | null {
  if (path.endsWith('/chat/completions')) return 'openai-chat';
  if (path.endsWith('/responses')) return 'openai-responses';
  if (path.endsWith('/embeddings')) return 'openai-embeddings';
  return path.endsWith('/messages') ? 'anthropic' : null;
}

function wordsOf(value: unknown): number {
  if (typeof value === 'string') return wordsIn(value);
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce<number>((sum, item) => sum + wordsOf(item), 0);
}

function objectIn(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

function firstNumber(...values: readonly unknown[]): number | null {
  return values.find((value): value is number => typeof value === 'number') ?? null;
}
