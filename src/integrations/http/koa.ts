import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Denied } from '../../limiter/acquire/decision.js';
import { type Admitted, admit, checkHttpOptions, type HttpLimitOptions } from './admission/admission.js';
import { disconnectSignal, passOn, watchEnd, writeFields } from './presence/node-response.js';
import { addFields, nameIn } from './admission/response-fields.js';
import { unlessGone } from './presence/unless-gone.js';

export { ipKey, type IpKeyOptions } from './admission/ip-key.js';
export type { HttpLimiter, HttpLimitOptions } from './admission/admission.js';

/** What the middleware needs of a context of koa 3. `ip` follows the setting `proxy` of the app. */
export interface KoaContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly ip: string;
  status: number;
  body: unknown;
  type: string;
  /** Answers an error. */
  onerror(error: unknown): void;
}

export interface KoaLimitOptions<C extends KoaContext> extends HttpLimitOptions<C> {
  /** Answers a refused request itself. The header fields and the status are set. `denial` is null if the store did not answer. */
  readonly handler?: (context: C, denial: Denied | null) => unknown;
}

/** Middleware for koa. */
export function rateLimit<C extends KoaContext = KoaContext>(
  options: KoaLimitOptions<C>,
): (context: C, next: () => Promise<unknown>) => Promise<void> {
  checkHttpOptions(options, ['handler']);
  return async (context, next) => {
    const whenOver = watchEnd(context.res);
    const signal = options.wait === undefined ? undefined : disconnectSignal(context.res, whenOver);
    const addresses = () => [context.ip, context.req.socket?.remoteAddress];
    const admission = await unlessGone(signal, admit(options, { request: context, addresses, signal }));
    if (admission === null) return;
    if (admission.kind !== 'skipped') keepFieldsOnError(context, admission.headers);
    if (admission.kind === 'refused') {
      context.status = admission.status;
      writeFields(admission.headers, context.res);
      if (options.handler !== undefined) return void (await options.handler(context, admission.denial));
      context.type = admission.contentType;
      context.body = admission.body;
      return;
    }
    if (admission.kind === 'admitted') passOn(admission, context.res, whenOver);
    await next();
  };
}

/**
 * koa answers an error with the header fields that the error has, and removes all others. The fields are in the error
 * only while koa answers it: an app may throw the same object for many requests.
 */
function keepFieldsOnError(context: KoaContext, lines: Admitted['headers']): void {
  const { onerror } = context;
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- It is koa's own function, not a handler of an event.
  context.onerror = (error) => {
    if (typeof error !== 'object' || error === null) return onerror.call(context, error);
    const own = Object.getOwnPropertyDescriptor(error, 'headers');
    const headers: Record<string, unknown> = { ...(error as { readonly headers?: object }).headers };
    const get = (name: string): string | undefined => headers[nameIn(headers, name)]?.toString();
    addFields({ get, set: (name, value) => void (headers[nameIn(headers, name)] = value) }, lines);
    const isAdded = Reflect.defineProperty(error, 'headers', { value: headers, configurable: true, writable: true });
    try {
      onerror.call(context, error);
    } finally {
      if (isAdded && own === undefined) Reflect.deleteProperty(error, 'headers');
      else if (isAdded) Reflect.defineProperty(error, 'headers', own as PropertyDescriptor);
    }
  };
}
