/** Route handlers of Next.js take a `Request` and return a `Response`, as every handler of `headgate/fetch` does. */
export {
  type FetchLimitOptions as NextLimitOptions,
  type HttpLimiter,
  ipKey,
  type IpKeyOptions,
  withRateLimit,
} from './fetch.js';
