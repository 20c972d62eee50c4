import type { Denied } from '../../limiter/acquire/decision.js';
import { type Admission, type Admitted, admit, checkHttpOptions, type HttpLimitOptions } from './admission.js';
import { checkTrustedProxies, forwardedAddress } from './client-address.js';
import { addFields } from './response-fields.js';

export { ipKey, type IpKeyOptions } from './ip-key.js';
export type { HttpLimiter, HttpLimitOptions } from './admission.js';

export interface FetchLimitOptions<Q extends Request = Request> extends HttpLimitOptions<Q> {
  /**
   * The number of proxies before this server. The address of the client is then the entry that the outermost of them has
   * written to `X-Forwarded-For`. Default: 0, the header is not trusted, and `key` is needed.
   */
  readonly trustedProxies?: number;
  /** Answers a refused request. The header fields are added to it. `denial` is null if the store did not answer. */
  readonly handler?: (request: Q, denial: Denied | null) => Response | Promise<Response>;
}

/** Limits a handler that takes a `Request` and returns a `Response`: of Deno, Bun, workers, and routes of Next.js. */
export function withRateLimit<Q extends Request, A extends readonly unknown[]>(
  handler: (request: Q, ...rest: A) => Response | Promise<Response>,
  options: FetchLimitOptions<Q>,
): (request: Q, ...rest: A) => Promise<Response> {
  checkHttpOptions(options, ['trustedProxies', 'handler']);
  const { trustedProxies = 0 } = options;
  checkTrustedProxies(trustedProxies);
  return async (request, ...rest) => {
    const address = (): string | null => forwardedAddress(request.headers.get('x-forwarded-for'), trustedProxies);
    const admission = await admit(options, { request, address, signal: request.signal });
    if (admission.kind === 'skipped') return handler(request, ...rest);
    if (admission.kind === 'refused') return refuse(options, request, admission);
    try {
      return await answered(await handler(request, ...rest), admission);
    } catch (error) {
      await admission.end(null);
      throw error;
    }
  };
}

async function refuse<Q extends Request>(
  { handler }: FetchLimitOptions<Q>,
  request: Q,
  refusal: Extract<Admission, { kind: 'refused' }>,
): Promise<Response> {
  const own = await handler?.(request, refusal.denial);
  const { status, contentType, body, headers } = refusal;
  const answer = own ?? new Response(body, { status, headers: { 'content-type': contentType } });
  return withFields(answer, headers);
}

/** The answer with our header fields. A lease with slots ends when the body has been read, every other one now. */
export async function answered(response: Response, admission: Admitted): Promise<Response> {
  const answer = withFields(response, admission.headers);
  if (admission.isHeld && answer.body !== null) return whenRead(answer, () => admission.end(answer.status));
  await admission.end(answer.status);
  return answer;
}

function withFields(response: Response, lines: Admitted['headers']): Response {
  if (lines.length === 0) return response;
  // The headers of a response of `fetch` or `Response.redirect` cannot be changed.
  const answer = new Response(response.body, response);
  const { headers } = answer;
  addFields({ get: (name) => headers.get(name) ?? undefined, set: (name, value) => headers.set(name, value) }, lines);
  return answer;
}

/** Calls `end` when the body ends, fails or is cancelled. Passes every chunk on at once. */
function whenRead(response: Response, end: () => Promise<void>): Response {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        await end();
        controller.close();
      } catch (error) {
        await end();
        controller.error(error);
      }
    },
    async cancel(reason) {
      await end();
      await reader.cancel(reason);
    },
  });
  return new Response(body, response);
}
