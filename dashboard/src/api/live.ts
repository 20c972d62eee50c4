import { parseEvent, type LiveEvent } from './events.js';
import { ApiError, type Api, messageOf } from './http.js';
import { SseParser } from './sse-parser.js';

/** How the page gets the events of the server. */
export type LiveState =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  | { readonly kind: 'polling' }
  /** `isFinal`: the server refuses this reader, and is not asked again. */
  | { readonly kind: 'not connected'; readonly why: string; readonly isFinal: boolean };

export interface LiveOptions {
  readonly api: Api;
  readonly namespace: string;
  readonly onEvent: (event: LiveEvent) => void;
  readonly onState: (state: LiveState) => void;
}

/** A proxy that buffers shows nothing of an endless stream. Its first bytes must come within this time. */
const FIRST_BYTES_MS = 4_000;
const POLL_MS = 1_500;
/** The server sends a comment every 15 s. */
const SILENCE_MS = 40_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;

/**
 * Reads events until the returned function is called. `EventSource` cannot send a token, so the stream is read with
 * `fetch`. Behind a proxy that buffers, it asks for short streams one after the other, which end by themselves.
 */
export function listen(options: LiveOptions): () => void {
  const stopped = new AbortController();
  void keepListening(options, stopped.signal);
  return () => stopped.abort();
}

async function keepListening(options: LiveOptions, stopped: AbortSignal): Promise<void> {
  let isPolling = false;
  let failures = 0;
  options.onState({ kind: 'connecting' });
  while (!stopped.aborted) {
    try {
      const ended = await readStream(options, stopped, isPolling);
      failures = 0;
      if (ended === 'no bytes') isPolling = true;
      if (isPolling) continue;
      throw new Error('The server has ended the stream');
    } catch (error) {
      if (stopped.aborted) return;
      const isFinal = error instanceof ApiError && (error.status === 401 || error.status === 403);
      options.onState({ kind: 'not connected', why: messageOf(error), isFinal });
      if (isFinal) return;
      // A stream that begins and breaks at once would otherwise be asked for without a pause.
      await pause(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures) * (0.5 + Math.random()), stopped);
      failures = Math.min(failures + 1, 10);
    }
  }
}

/** Reads one stream to its end. `no bytes`: the response began, but its first bytes did not arrive. */
async function readStream(
  options: LiveOptions,
  stopped: AbortSignal,
  isPolling: boolean,
): Promise<'ended' | 'no bytes'> {
  const { api, namespace, onEvent, onState } = options;
  const ending = new AbortController();
  const signal = AbortSignal.any([stopped, ending.signal]);
  let hasBytes = false;
  let timer = setTimeout(() => ending.abort(), FIRST_BYTES_MS + (isPolling ? POLL_MS : 0));
  const parser = new SseParser((type, data) => {
    const event = parseEvent(type, data);
    if (event !== null) onEvent(event);
  });
  try {
    const response = await api.stream(
      '/v1/events',
      { namespace, ...(isPolling ? { forMs: String(POLL_MS) } : {}) },
      signal,
    );
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const piece = await reader?.read();
      if (piece === undefined || piece.done) return 'ended';
      if (!hasBytes) onState({ kind: isPolling ? 'polling' : 'live' });
      hasBytes = true;
      clearTimeout(timer);
      timer = setTimeout(() => ending.abort(), SILENCE_MS);
      parser.push(piece.value);
    }
  } catch (error) {
    if (!ending.signal.aborted || stopped.aborted) throw error;
    if (!hasBytes && !isPolling) return 'no bytes';
    throw new Error('The stream is silent', { cause: error });
  } finally {
    clearTimeout(timer);
    ending.abort();
  }
}

async function pause(ms: number, stopped: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      stopped.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    stopped.addEventListener('abort', end);
  });
}
