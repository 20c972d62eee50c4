import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Denied } from '../../limiter/acquire/decision.js';
import { admit, checkHttpOptions, type HttpLimitOptions } from './admission/admission.js';
import { disconnectSignal, isOver, passOn, watchEnd, writeFields, writeRefusal } from './presence/node-response.js';

export { ipKey, type IpKeyOptions } from './admission/ip-key.js';
export type { HttpLimiter, HttpLimitOptions } from './admission/admission.js';

/** What the middleware needs of a request of express 4 or 5. `ip` follows the setting `trust proxy` of the app. */
export interface ExpressRequest extends IncomingMessage {
  readonly ip?: string | undefined;
}

type Next = (error?: unknown) => void;

export interface ExpressLimitOptions<Q extends ExpressRequest, S extends ServerResponse> extends HttpLimitOptions<Q> {
  /** Answers a refused request itself. The header fields and the status are set. `denial` is null if the store did not answer. */
  readonly handler?: (request: Q, response: S, next: Next, denial: Denied | null) => unknown;
}

/** Middleware for express 4 and 5. */
export function rateLimit<Q extends ExpressRequest = ExpressRequest, S extends ServerResponse = ServerResponse>(
  options: ExpressLimitOptions<Q, S>,
): (request: Q, response: S, next: Next) => Promise<void> {
  checkHttpOptions(options, ['handler']);
  const limit = async (request: Q, response: S, next: Next): Promise<void> => {
    const whenOver = watchEnd(response);
    const signal = options.wait === undefined ? undefined : disconnectSignal(response, whenOver);
    const addresses = () => [request.ip, request.socket.remoteAddress];
    const admission = await admit(options, { request, addresses, signal });
    if (admission.kind === 'refused') {
      if (options.handler === undefined) return writeRefusal(admission, response);
      response.statusCode = admission.status;
      writeFields(admission.headers, response);
      await options.handler(request, response, next, admission.denial);
      return;
    }
    if (admission.kind === 'admitted') passOn(admission, response, whenOver);
    next();
  };
  // express 4 does not wait for a promise.
  return async (request, response, next) => {
    try {
      await limit(request, response, next);
    } catch (error) {
      // A client that has disconnected gets no answer.
      if (!isOver(response)) next(error);
    }
  };
}
