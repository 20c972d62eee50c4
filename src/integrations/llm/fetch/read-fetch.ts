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
export async function readFetch(args: FetchArguments, includeUsage: boolean): Promise<FetchedCall | null> {
  const [input, init] = args;
  const isRequest = input instanceof Request;
  const method = init?.method ?? (isRequest ? input.method : 'GET');
  const endpoint = readEndpoint(pathOf(isRequest ? input.url : String(input)));
  if (endpoint === null || method.toUpperCase() !== 'POST') return null;
  const signal = init?.signal ?? (isRequest ? input.signal : null);
  const text = await textOf(input, init);
  const body = text === null ? null : parseBody(text);
  const sized = readRequest(endpoint, body);
  const { api } = endpoint;
  const plain = { api, sized, signal, args: withoutSignal(args), stripsUsage: false };
  const streamsChat = api === 'openai-chat' && sized.call.stream;
  if (!includeUsage || !streamsChat || text === null || body === null || asksForUsage(body)) return plain;
  return { ...plain, args: withBody(plain.args, withUsage(text, body)), stripsUsage: true };
}

/** The path of an address, without its query: Google accepts a key there. */
function pathOf(address: string): string {
  const [path = ''] = address.split(/[?#]/, 1);
  return path;
}

/** null: a stream, a form, or no text. Those are not read, so that nothing is buffered. */
async function textOf(input: FetchArguments[0], init: FetchArguments[1]): Promise<string | null> {
  const body = init?.body;
  if (typeof body === 'string') return body;
  if (body instanceof Uint8Array || body instanceof ArrayBuffer) return new TextDecoder().decode(body);
  if (body instanceof Blob) return body.text();
  if ((body === undefined || body === null) && input instanceof Request) return input.clone().text();
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
  const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined));
  // The length of the body that was replaced.
  headers.delete('content-length');
  return [input, { ...init, body, headers }];
}
