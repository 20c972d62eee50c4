import { noteServerTime } from './server-time.js';

/** An answer that is an error: its status and its sentence. Status 0: the server did not answer. */
export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

type Query = Readonly<Record<string, string | undefined>>;

interface Sending {
  readonly query?: Query;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

const TIMEOUT_MS = 15_000;

/** Sends requests to the server that the page came from. */
export class Api {
  readonly #headers: Readonly<Record<string, string>>;

  constructor(token: string | null, namespace: string | null) {
    this.#headers = {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(namespace === null ? {} : { 'headgate-namespace': namespace }),
    };
  }

  get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
    return this.#send<T>('GET', path, { query, ...(signal === undefined ? {} : { signal }) });
  }

  send<T>(method: 'POST' | 'PUT' | 'DELETE', path: string, sending: Sending = {}): Promise<T> {
    return this.#send<T>(method, path, sending);
  }

  /** The response of an event stream, which has no time limit. */
  async stream(path: string, query: Query, signal: AbortSignal): Promise<Response> {
    const response = await fetch(addressOf(path, query), { headers: this.#headers, signal, cache: 'no-store' });
    if (!response.ok) throw await errorOf(response);
    return response;
  }

  async #send<T>(method: string, path: string, { query = {}, body, signal }: Sending): Promise<T> {
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    let response: Response;
    try {
      response = await fetch(addressOf(path, query), {
        method,
        headers: { ...this.#headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
        cache: 'no-store',
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch (error) {
      signal?.throwIfAborted();
      throw new ApiError(0, `The server does not answer (${messageOf(error)})`);
    }
    noteServerTime(response);
    if (!response.ok) throw await errorOf(response);
    return (await response.json()) as T;
  }
}

function addressOf(path: string, query: Query): string {
  const filled = Object.entries(query).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
  );
  const search = new URLSearchParams(filled).toString();
  return search === '' ? path : `${path}?${search}`;
}

async function errorOf(response: Response): Promise<ApiError> {
  try {
    const { detail } = (await response.json()) as { readonly detail: string };
    return new ApiError(response.status, detail);
  } catch {
    return new ApiError(response.status, `The server answered ${response.status}`);
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A search may read many pages that have nothing of it. */
const MOST_PAGES = 50;

/** Reads the pages of a list until `enough` items are found, the list ends, or `mostPages` were read. */
export async function readPages<T>(
  read: (after: string | undefined) => Promise<{ readonly items: readonly T[]; readonly next: string | null }>,
  enough: number,
  mostPages: number = MOST_PAGES,
): Promise<{ readonly items: readonly T[]; readonly hasMore: boolean }> {
  const found: T[] = [];
  let after: string | undefined;
  for (let page = 0; page < mostPages; page++) {
    const { items, next } = await read(after);
    found.push(...items);
    if (next === null) return { items: found.slice(0, enough), hasMore: found.length > enough };
    if (found.length >= enough) break;
    after = next;
  }
  return { items: found.slice(0, enough), hasMore: true };
}
