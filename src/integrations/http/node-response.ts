import type { ServerResponse } from 'node:http';
import type { Admission, Admitted } from './admission.js';
import { addFields } from './response-fields.js';

/** Writes the header fields of a grant, and ends its lease when the answer has ended or the client has disconnected. */
export function passOn(admission: Admitted, response: ServerResponse): void {
  writeFields(admission.headers, response);
  // `close` follows `finish` too. If the client is gone before, the request has no answer.
  const end = (): void => void admission.end(response.writableFinished ? response.statusCode : null);
  if (response.closed) end();
  else response.once('close', end);
}

export function writeRefusal(refusal: Extract<Admission, { kind: 'refused' }>, response: ServerResponse): void {
  response.statusCode = refusal.status;
  writeFields(refusal.headers, response);
  response.setHeader('content-type', refusal.contentType);
  response.end(refusal.body);
}

export function writeFields(lines: Admitted['headers'], response: ServerResponse): void {
  const get = (name: string): string | undefined => {
    const value = response.getHeader(name);
    return Array.isArray(value) ? value.join(', ') : value?.toString();
  };
  addFields({ get, set: (name, value) => response.setHeader(name, value) }, lines);
}

/** Aborts when the client disconnects before it has got an answer. A wait for tokens then ends. */
export function disconnectSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) gone.abort(new Error('The client has disconnected'));
  });
  return gone.signal;
}
