import type { Context, MiddlewareHandler } from 'hono';
import type { Denied } from '../../limiter/acquire/decision.js';
import { admit, checkHttpOptions, type HttpLimitOptions } from './admission/admission.js';
import { checkTrustedProxies, forwardedAddress } from './admission/client-address.js';
import { leftSignal } from './presence/left-signal.js';
import { answered, refusalOf, unanswered } from './admission/limit-handler.js';
import { unlessGone } from './presence/unless-gone.js';
import { whilePresent } from './presence/while-present.js';

export { ipKey, type IpKeyOptions } from './admission/ip-key.js';
export type { HttpLimiter, HttpLimitOptions } from './admission/admission.js';

export interface HonoLimitOptions extends HttpLimitOptions<Context> {
  /**
   * The number of proxies before this server, as in `headgate/fetch`. Default: 0. Then the address is that of the
   * connection where `@hono/node-server` runs the app, and `key` is needed elsewhere.
   */
  readonly trustedProxies?: number;
  /** Answers a refused request. The header fields are added to it. `denial` is null if the store did not answer. */
  readonly handler?: (context: Context, denial: Denied | null) => Response | Promise<Response>;
}

/** Middleware for hono. */
export function rateLimit(options: HonoLimitOptions): MiddlewareHandler {
  checkHttpOptions(options, ['trustedProxies', 'handler']);
  const { trustedProxies = 0, handler } = options;
  checkTrustedProxies(trustedProxies);
  return async (context, next) => {
    const addresses = () => [
      forwardedAddress(context.req.header('x-forwarded-for'), trustedProxies),
      connectionAddress(context),
    ];
    const signal = leftSignal(context.req.raw.signal, context.env);
    const admission = await unlessGone(signal, admit(options, { request: context, addresses, signal }));
    if (admission === null) return unanswered();
    if (admission.kind === 'skipped') {
      await next();
      return undefined;
    }
    if (admission.kind === 'refused') {
      return refusalOf(await handler?.(context, admission.denial), admission);
    }
    try {
      await whilePresent(signal, admission, next);
      const response = await answered({ method: context.req.method, signal }, context.res, admission);
      if (response === context.res) return undefined;
      // hono merges the headers of an answer that is replaced, unless there is none.
      context.res = undefined;
      context.res = response;
      return undefined;
    } catch (error) {
      await admission.end(null);
      throw error;
    }
  };
}

/** @hono/node-server gives the request of Node. Behind proxies its address is that of the nearest proxy. */
function connectionAddress({ env }: Context): string | null {
  const { incoming } = (env ?? {}) as { readonly incoming?: { readonly socket?: { readonly remoteAddress?: string } } };
  return incoming?.socket?.remoteAddress ?? null;
}
