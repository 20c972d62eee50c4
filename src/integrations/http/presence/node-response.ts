import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Admission, Admitted } from '../admission/admission.js';
import { whenConnectionCloses } from './connection-end.js';
import { addFields } from '../admission/response-fields.js';

/** Calls a function when a response is over, or at once if it is. */
export type WhenOver = (then: () => void) => void;

/**
 * Listens for the end of a response. Begin before the first `await`: a client may leave while the limiter decides, and
 * the event is not repeated.
 */
export function watchEnd(response: ServerResponse): WhenOver {
  let isEnded = isOver(response);
  const waiting: (() => void)[] = [];
  if (!isEnded) {
    const end = (): void => {
      if (isEnded) return;
      isEnded = true;
      forget();
      for (const then of waiting) then();
    };
    const forget = whenConnectionCloses(connectionOf(response), end);
    response.once('close', end);
  }
  return (then) => {
    if (isEnded) then();
    else waiting.push(then);
  };
}

/** A response of HTTP/2 has neither `closed` nor `destroyed`: its stream has. */
export function isOver(response: ServerResponse): boolean {
  const { stream } = response as { readonly stream?: { readonly destroyed?: boolean } };
  if (response.closed || response.destroyed) return true;
  return stream?.destroyed === true || connectionOf(response)?.destroyed === true;
}

/** A response that waits for an earlier one of its connection has no socket: its request has. HTTP/2 tells the end of each stream. */
function connectionOf(response: ServerResponse): Socket | null {
  if ('stream' in response) return null;
  return (response.req as IncomingMessage | undefined)?.socket ?? null;
}

/** HTTP/2 calls the writing of a stream finished, too, if its client has reset it before the answer. */
function isAnswered({ writableEnded, writableFinished }: ServerResponse): boolean {
  return writableEnded && writableFinished;
}

/** Writes the header fields of a grant, and ends its lease when the answer has ended or the client has disconnected. */
export function passOn(admission: Admitted, response: ServerResponse, whenOver: WhenOver): void {
  // `close` follows `finish` too. If the client is gone before, the request has no answer.
  whenOver(() => void admission.end(isAnswered(response) ? response.statusCode : null));
  writeFields(admission.headers, response);
}

export function writeRefusal(refusal: Extract<Admission, { kind: 'refused' }>, response: ServerResponse): void {
  if (response.headersSent) return;
  response.statusCode = refusal.status;
  writeFields(refusal.headers, response);
  response.setHeader('content-type', refusal.contentType);
  response.end(refusal.body);
}

/** Writes nothing if the app has answered meanwhile, such as after a timeout of its own: Node would throw. */
export function writeFields(lines: Admitted['headers'], response: ServerResponse): void {
  if (response.headersSent) return;
  const get = (name: string): string | undefined => {
    const value = response.getHeader(name);
    return Array.isArray(value) ? value.join(', ') : value?.toString();
  };
  addFields({ get, set: (name, value) => response.setHeader(name, value) }, lines);
}

/** Aborts when the client disconnects before it has got an answer. A wait for tokens then ends. */
export function disconnectSignal(response: ServerResponse, whenOver: WhenOver): AbortSignal {
  const gone = new AbortController();
  whenOver(() => {
    if (!isAnswered(response)) gone.abort(new Error('The client has disconnected'));
  });
  return gone.signal;
}
