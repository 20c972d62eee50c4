import { type FetchLimitOptions, limitHandler } from './admission/limit-handler.js';

export { type FetchLimitOptions as NextLimitOptions, type HttpLimiter, ipKey, type IpKeyOptions } from './fetch.js';

/** Limits a route handler or the proxy of Next.js, as `withRateLimit` of `headgate/fetch` limits every other handler. */
export function withRateLimit<Q extends Request, A extends readonly unknown[]>(
  handler: (request: Q, ...rest: A) => Response | Promise<Response>,
  options: FetchLimitOptions<Q>,
): (request: Q, ...rest: A) => Promise<Response> {
  return limitHandler(handler, options, statusThrown);
}

/**
 * The status with which Next.js answers what `redirect`, `notFound`, `forbidden` and `unauthorized` throw:
 * `NEXT_REDIRECT;replace;/address;307;`, `NEXT_HTTP_ERROR_FALLBACK;404`. null: any other error.
 */
function statusThrown(error: unknown): number | null {
  const { digest } = (error ?? {}) as { readonly digest?: unknown };
  if (typeof digest !== 'string') return null;
  if (digest === 'NEXT_NOT_FOUND') return 404;
  const status = /^NEXT_(?:REDIRECT;.*|HTTP_ERROR_FALLBACK);(\d{3});?$/s.exec(digest)?.[1];
  return status === undefined ? null : Number(status);
}
