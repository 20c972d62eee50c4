import type { Denied } from '../../../limiter/acquire/decision.js';
import { type Admission, type Admitted, admit, checkHttpOptions, type HttpLimitOptions } from './admission.js';
import { checkTrustedProxies, forwardedAddress } from './client-address.js';
import { endWithBody } from '../presence/end-with-body.js';
import { leftSignal } from '../presence/left-signal.js';
import { addFields } from './response-fields.js';
import { unlessGone } from '../presence/unless-gone.js';
import { whilePresent } from '../presence/while-present.js';

export interface FetchLimitOptions<Q extends Request = Request> extends HttpLimitOptions<Q> {
  /**
   * The number of proxies before this server. The address of the client is then the entry that the outermost of them has
   * written to `X-Forwarded-For`. Default: 0, the header is not trusted, and `key` is needed.
   */
  readonly trustedProxies?: number;
  /** Answers a refused request. The header fields are added to it. `denial` is null if the store did not answer. */
  readonly handler?: (request: Q, denial: Denied | null) => Response | Promise<Response>;
}

/** Limits a handler. `statusThrown`: the status of the answer that the server makes of an error; null: it is a failure. */
export function limitHandler<Q extends Request, A extends readonly unknown[]>(
  handler: (request: Q, ...rest: A) => Response | Promise<Response>,
  options: FetchLimitOptions<Q>,
  statusThrown: (error: unknown) => number | null,
): (request: Q, ...rest: A) => Promise<Response> {
  checkHttpOptions(options, ['trustedProxies', 'handler']);
  const { trustedProxies = 0 } = options;
  checkTrustedProxies(trustedProxies);
  return async (request, ...rest) => {
    const addresses = () => [forwardedAddress(request.headers.get('x-forwarded-for'), trustedProxies)];
    const signal = leftSignal(request.signal, rest[0]);
    const admission = await unlessGone(signal, admit(options, { request, addresses, signal }));
    if (admission === null) return unanswered();
    if (admission.kind === 'skipped') return handler(request, ...rest);
    if (admission.kind === 'refused') {
      return refusalOf(await options.handler?.(request, admission.denial), admission);
    }
    try {
      const response = await whilePresent(signal, admission, async () => handler(request, ...rest));
      return await answered({ method: request.method, signal }, response, admission);
    } catch (error) {
      await admission.end(statusThrown(error));
      throw error;
    }
  };
}

/**
 * The answer with our header fields. A lease with slots ends with the body, every other one now. Nobody reads the body of
 * an answer to HEAD: hono and Next.js drop it. No lease lasts as long as a WebSocket: its end is not told.
 */
export async function answered(
  { method, signal }: Pick<Request, 'method' | 'signal'>,
  response: Response,
  admission: Admitted,
): Promise<Response> {
  const { status } = response;
  if (status === NETWORK_ERROR) {
    await admission.end(null);
    return response;
  }
  if (status === SWITCHING_PROTOCOLS || wasSent(response)) {
    await admission.end(signal.aborted ? null : status);
    return response;
  }
  const answer = withFields(response, admission.headers);
  if (admission.isHeld && answer.body !== null && method !== 'HEAD') return endWithBody(answer, admission, signal);
  await admission.end(signal.aborted ? null : status);
  return answer;
}

/** Whether outer code has sent the answer already, as `timeout` of hono does. */
function wasSent(response: Response): boolean {
  try {
    return response.bodyUsed || response.body?.locked === true;
  } catch {
    // That of @hono/node-server is made when it is first asked for, and cannot be made any more.
    return true;
  }
}

/** The answer to a client that has left, which no client sees. The status is that of nginx. */
export function unanswered(): Response {
  return new Response(null, { status: 499 });
}

/** The answer of a handler to a refused request, or ours, with our header fields. */
export function refusalOf(own: Response | undefined, refusal: Extract<Admission, { kind: 'refused' }>): Response {
  const { status, contentType, body, headers } = refusal;
  if (own?.status === NETWORK_ERROR || own?.status === SWITCHING_PROTOCOLS) return own;
  // A copy in any case, because hono writes to the headers of its answers, which those of `fetch` do not allow.
  const [content, init] =
    own === undefined ? [body, { status, headers: { 'content-type': contentType } }] : [own.body, own];
  return withFields(new Response(content, init), headers);
}

/** The status of `Response.error()`. No other `Response` can be made with it. */
const NETWORK_ERROR = 0;
/** The answer of Deno and workers to a request for a WebSocket, which it contains. No other `Response` can be made with it. */
const SWITCHING_PROTOCOLS = 101;

function withFields(response: Response, lines: Admitted['headers']): Response {
  if (lines.length === 0) return response;
  // The headers of a response of `fetch` or `Response.redirect` cannot be changed.
  const answer = new Response(response.body, response);
  const { headers } = answer;
  addFields({ get: (name) => headers.get(name) ?? undefined, set: (name, value) => headers.set(name, value) }, lines);
  return answer;
}
