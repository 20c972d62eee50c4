import { readEndpoint } from '../request/endpoints.js';
import { asksForUsage, withUsage } from '../request/include-usage.js';
import type { LlmApi, SizedCall } from '../request/llm-call.js';
import { parseBody, readRequest } from '../request/read-request.js';

type FetchArguments = Parameters<typeof fetch>;

/** A call of a model that is about to be sent with `fetch`. */
export interface FetchedCall {
  readonly api: LlmApi;
  readonly sized: SizedCall;
  readonly signal: AbortSignal | null;
  /** The arguments for `fetch`, without the signal; the body may ask for the usage. */
  readonly args: FetchArguments;
  /** Whether the chunk that states the usage is not passed on, because the caller did not ask for it. */
  readonly stripsUsage: boolean;
}

/** null: the request is no call of a model, and passes without limits. */
export async function readFetch(given: FetchArguments, includeUsage: boolean): Promise<FetchedCall | null> {
  const [target, options] = given;
  const method = options?.method ?? (isRequest(target) ? target.method : 'GET');
  const endpoint = readEndpoint(isRequest(target) ? target.url : String(target));
  if (endpoint === null || method.toUpperCase() !== 'POST') return null;
  const args = withPlainInit(given);
  const [input, init] = args;
  const signal = init?.signal ?? (isRequest(input) ? input.signal : null);
  const text = await textOf(input, init);
  const body = text === null ? null : parseBody(text);
  // Threads of OpenAI and other services have addresses that end in `/messages`, too.
  if (endpoint.api === 'anthropic' && body !== null && !Array.isArray(body['messages'])) return null;
  const sized = readRequest(endpoint, body);
  const { api } = endpoint;
  const plain = { api, sized, signal, args: withoutSignal(args), stripsUsage: false };
  const streamsChat = api === 'openai-chat' && sized.call.stream;
  if (!includeUsage || !streamsChat || text === null || body === null || asksForUsage(body)) return plain;
  return { ...plain, args: withBody(plain.args, withUsage(text, body)), stripsUsage: true };
}

/** By its shape: an own copy of undici has a class of its own. */
function isRequest(value: unknown): value is Request {
  return typeof value === 'object' && value !== null && 'clone' in value && 'url' in value;
}

/**
 * Proxies send a request on by `fetch(address, request)`. The fields of a `Request` are not its own, so that a copy of
 * it has none.
 */
function withPlainInit([input, init]: FetchArguments): FetchArguments {
  return isRequest(init) ? [new Request(input, init)] : [input, init];
}

/** null: a stream, a form, or no text. Those are not read, so that nothing is buffered. */
async function textOf(input: FetchArguments[0], init: FetchArguments[1]): Promise<string | null> {
  const body = init?.body;
  if (typeof body === 'string') return body;
  if (isBytes(body)) return new TextDecoder().decode(body);
  if (body instanceof Blob) return body.text();
  if ((body === undefined || body === null) && isRequest(input)) return input.clone().text();
  return null;
}

export function withSignal([input, init]: FetchArguments, signal: AbortSignal): FetchArguments {
  return [input, { ...init, signal }];
}

function withoutSignal([input, init]: FetchArguments): FetchArguments {
  const { signal: _, ...rest } = init ?? {};
  return [input, rest];
}

function withBody([input, init]: FetchArguments, body: string): FetchArguments {
  const headers = new Headers(init?.headers ?? (isRequest(input) ? input.headers : undefined));
  // The length of the body that was replaced.
  headers.delete('content-length');
  return [input, { ...init, body: likeBody(init?.body, body), headers }];
}

/** The type of a body says what `fetch` sends as its `content-type`, where the headers have none. */
function likeBody(replaced: RequestInit['body'], text: string): NonNullable<RequestInit['body']> {
  if (replaced instanceof Blob) return new Blob([text], { type: replaced.type });
  return isBytes(replaced) ? new TextEncoder().encode(text) : text;
}

function isBytes(body: unknown): body is ArrayBuffer | ArrayBufferView {
  return body instanceof ArrayBuffer || ArrayBuffer.isView(body);
}
