import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Denied } from '../../limiter/acquire/decision.js';
import { admit, checkHttpOptions, type HttpLimitOptions } from './admission.js';
import { disconnectSignal, passOn, writeFields } from './node-response.js';

export { ipKey, type IpKeyOptions } from './ip-key.js';
export type { HttpLimiter, HttpLimitOptions } from './admission.js';

/** What the middleware needs of a context of koa 2 or 3. `ip` follows the setting `proxy` of the app. */
export interface KoaContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly ip: string;
  status: number;
  body: unknown;
  type: string;
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
    const signal = options.wait === undefined ? undefined : disconnectSignal(context.res);
    const admission = await admit(options, { request: context, address: () => context.ip || null, signal });
    if (admission.kind === 'refused') {
      context.status = admission.status;
      writeFields(admission.headers, context.res);
      if (options.handler !== undefined) return void (await options.handler(context, admission.denial));
      context.type = admission.contentType;
      context.body = admission.body;
      return;
    }
    if (admission.kind === 'admitted') passOn(admission, context.res);
    await next();
  };
}
