import { type FetchLimitOptions, limitHandler } from './admission/limit-handler.js';

export { ipKey, type IpKeyOptions } from './admission/ip-key.js';
export type { HttpLimiter, HttpLimitOptions } from './admission/admission.js';
export type { FetchLimitOptions } from './admission/limit-handler.js';

/** Limits a handler that takes a `Request` and returns a `Response`: of Deno, Bun, workers, and routes of Next.js. */
export function withRateLimit<Q extends Request, A extends readonly unknown[]>(
  handler: (request: Q, ...rest: A) => Response | Promise<Response>,
  options: FetchLimitOptions<Q>,
): (request: Q, ...rest: A) => Promise<Response> {
  return limitHandler(handler, options, () => null);
}
