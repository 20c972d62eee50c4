import { getRequestListener, type HttpBindings, RequestError } from '@hono/node-server';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ValidationError } from '../../core/errors.js';
import { type AccessEntry, logRefused } from '../answer/access-log.js';
import { cut, errorProblem } from '../answer/problem.js';
import { respond } from '../answer/respond.js';

export interface ListenerOptions {
  /** The host of requests that name none. */
  readonly hostname: string;
  readonly onError: (error: unknown, where: string) => void;
  readonly onAccess: ((entry: AccessEntry) => void) | undefined;
}

type Answer = (request: Request, exchange: HttpBindings) => Promise<Response>;

/** The listener of an HTTP server of Node. Requests that cannot be a `Request` are answered by a problem too. */
export function requestListener(answer: Answer, { hostname, onError, onAccess }: ListenerOptions) {
  // Set for the time in which a request is made, which is synchronous: the handler of errors gets the error only.
  let made: IncomingMessage | null = null;
  const errorHandler = (error: unknown): Response => {
    if (!(error instanceof RequestError) || made === null) {
      onError(error, 'answering a request');
      return respond(errorProblem(error));
    }
    const { method = '', url = '' } = made;
    if (onAccess !== undefined) logRefused(onAccess, { method, path: cut(url), status: 400 });
    return respond(errorProblem(new ValidationError('path or Host', 'valid in a URL', cut(url))));
  };
  // This server speaks HTTP/1.1 only.
  const listener = getRequestListener(async (request, bindings) => answer(request, bindings as HttpBindings), {
    hostname,
    errorHandler,
  });
  return (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    made = incoming;
    void listener(incoming, outgoing);
    made = null;
  };
}
