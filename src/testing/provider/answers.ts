import type { ProviderRequest } from './provider-request.js';

/** One word, which is one token. */
const WORD = 'word ';

type Event = { readonly name: string | null; readonly data: unknown };

/** What the provider sends: the events before the output, one event for each token, and the events after it. */
export interface StreamedAnswer {
  readonly before: readonly Event[];
  readonly token: Event;
  readonly after: readonly Event[];
}

const data = (value: unknown): Event => ({ name: null, data: value });
const named = (type: string, fields: object = {}): Event => ({ name: type, data: { type, ...fields } });

/** The text of a server-sent event. */
export function renderEvent({ name, data: content }: Event): string {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  return `${name === null ? '' : `event: ${name}\n`}data: ${text}\n\n`;
}

/** A complete JSON answer with this many tokens. `padding`: characters of output that count no token. */
export function jsonAnswer(request: ProviderRequest, outputTokens: number, padding: number): object {
  const text = WORD.repeat(outputTokens) + '.'.repeat(padding);
  const { api, model, inputTokens } = request;
  switch (api) {
    case 'openai-chat':
      return {
        ...CHAT,
        object: 'chat.completion',
        model,
        choices: [{ index: 0, message: { role: 'assistant', content: text, refusal: null }, finish_reason: 'stop' }],
        usage: chatUsage(inputTokens, outputTokens),
      };
    case 'openai-responses':
      return responseOf(request, 'completed', outputTokens, text);
    case 'openai-embeddings': {
      const embedding = Array.from({ length: Math.max(4, Math.floor(padding / 8)) }, () => 0.123_45);
      const usage = { prompt_tokens: inputTokens, total_tokens: inputTokens };
      return { object: 'list', model, data: [{ object: 'embedding', index: 0, embedding }], usage };
    }
    case 'google-embeddings':
      return { embeddings: [{ values: [0.1, 0.2] }], usageMetadata: { promptTokenCount: inputTokens } };
    case 'anthropic':
      return {
        ...messageOf(request),
        content: [{ type: 'text', text }],
        stop_reason: 'end_turn',
        usage: { input_tokens: inputTokens, output_tokens: outputTokens },
      };
    case 'google':
      return {
        ...candidates(text, 'STOP'),
        usageMetadata: googleUsage(inputTokens, outputTokens),
        modelVersion: model,
      };
  }
}

export function streamedAnswer(request: ProviderRequest, outputTokens: number): StreamedAnswer {
  const { inputTokens } = request;
  switch (request.api) {
    case 'openai-chat':
      return streamedChat(request, outputTokens);
    case 'openai-responses':
      return streamedResponse(request, outputTokens);
    case 'anthropic':
      return streamedMessage(request, outputTokens);
    case 'google':
      return {
        before: [],
        token: data({ ...candidates(WORD, undefined), usageMetadata: { promptTokenCount: inputTokens } }),
        after: [data({ ...candidates('', 'STOP'), usageMetadata: googleUsage(inputTokens, outputTokens) })],
      };
    case 'openai-embeddings':
    case 'google-embeddings':
      return { before: [], token: data('{}'), after: [] };
  }
}

const CHAT = { id: 'chatcmpl-1', created: 1_800_000_000, system_fingerprint: 'fp' } as const;

function chatUsage(inputTokens: number, outputTokens: number): object {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
}

function streamedChat({ model, inputTokens, includesUsage }: ProviderRequest, outputTokens: number): StreamedAnswer {
  const chunk = { ...CHAT, object: 'chat.completion.chunk', model, ...(includesUsage ? { usage: null } : {}) };
  const choice = (delta: object, reason: string | null): Event =>
    data({ ...chunk, choices: [{ index: 0, delta, finish_reason: reason }] });
  const usage = data({ ...chunk, choices: [], usage: chatUsage(inputTokens, outputTokens) });
  return {
    before: [choice({ role: 'assistant', content: '' }, null)],
    token: choice({ content: WORD }, null),
    after: [choice({}, 'stop'), ...(includesUsage ? [usage] : []), data('[DONE]')],
  };
}

function responseOf(
  { model, inputTokens }: ProviderRequest,
  status: string,
  outputTokens: number,
  text: string,
): object {
  const content = [{ type: 'output_text', text, annotations: [], logprobs: [] }];
  const isDone = status === 'completed';
  const usage = {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + outputTokens,
  };
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 1_800_000_000,
    status,
    error: null,
    incomplete_details: null,
    model,
    output: isDone ? [{ id: 'msg_1', type: 'message', status, role: 'assistant', content }] : [],
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
    usage: isDone ? usage : null,
    metadata: {},
  };
}

function streamedResponse(request: ProviderRequest, outputTokens: number): StreamedAnswer {
  const text = WORD.repeat(outputTokens);
  const place = { item_id: 'msg_1', output_index: 0, content_index: 0, sequence_number: 0 };
  const item = { id: 'msg_1', type: 'message', status: 'in_progress', role: 'assistant', content: [] };
  const part = { type: 'output_text', text: '', annotations: [] };
  return {
    before: [
      named('response.created', { sequence_number: 0, response: responseOf(request, 'in_progress', 0, '') }),
      named('response.output_item.added', { output_index: 0, sequence_number: 0, item }),
      named('response.content_part.added', { ...place, part }),
    ],
    token: named('response.output_text.delta', { ...place, delta: WORD, logprobs: [] }),
    after: [
      named('response.output_text.done', { ...place, text, logprobs: [] }),
      named('response.content_part.done', { ...place, part: { ...part, text } }),
      named('response.output_item.done', {
        output_index: 0,
        sequence_number: 0,
        item: { ...item, status: 'completed', content: [{ ...part, text }] },
      }),
      named('response.completed', {
        sequence_number: 0,
        response: responseOf(request, 'completed', outputTokens, text),
      }),
    ],
  };
}

function messageOf({ model }: ProviderRequest): object {
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
}

function streamedMessage(request: ProviderRequest, outputTokens: number): StreamedAnswer {
  const usage = {
    input_tokens: request.inputTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: Math.min(1, outputTokens),
  };
  const stop = { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: outputTokens } };
  return {
    before: [
      named('message_start', { message: { ...messageOf(request), usage } }),
      named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
      named('ping'),
    ],
    token: named('content_block_delta', { index: 0, delta: { type: 'text_delta', text: WORD } }),
    after: [named('content_block_stop', { index: 0 }), named('message_delta', stop), named('message_stop')],
  };
}

function candidates(text: string, finishReason: string | undefined): object {
  return { candidates: [{ index: 0, content: { role: 'model', parts: [{ text }] }, finishReason }] };
}

function googleUsage(inputTokens: number, outputTokens: number): object {
  return {
    promptTokenCount: inputTokens,
    candidatesTokenCount: outputTokens,
    totalTokenCount: inputTokens + outputTokens,
  };
}
