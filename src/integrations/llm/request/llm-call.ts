/** The shapes of requests and answers that are understood. Many vendors speak those of OpenAI. */
export type LlmApi =
  | 'openai-chat'
  | 'openai-completions'
  | 'openai-responses'
  | 'openai-embeddings'
  | 'anthropic'
  | 'google'
  | 'google-embeddings';

/** A call of a model as its request describes it. Contains no header and no address, so that it contains no key. */
export interface LlmCall {
  readonly api: LlmApi | 'ai-sdk';
  readonly model: string;
  /** Whether the answer comes as server-sent events. */
  readonly stream: boolean;
  /** The end user that the request names (`user`, `safety_identifier`, `metadata.user_id`); null: none. */
  readonly user: string | null;
}

/** What the estimate of a call is made from. */
export interface PromptSize {
  /** Characters of text, without images, audio and other binary parts. */
  readonly characters: number;
  /** Tokens that the request contains as numbers. */
  readonly tokens: number;
  /** The text itself, in pieces, for a tokenizer. */
  readonly texts: readonly string[];
}

/** A call with the sizes that its request states. */
export interface SizedCall {
  readonly call: LlmCall;
  readonly prompt: PromptSize;
  /** No tokenizer finds more tokens in the text of the request. Does not cover images, files, and what the provider adds. */
  readonly maxInputTokens: number;
  /** The most output tokens that the request allows, of all its choices together; null: it does not say. */
  readonly maxOutputTokens: number | null;
}
