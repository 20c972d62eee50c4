import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Denied } from '../../limiter/acquire/decision.js';
import { admit, checkHttpOptions, type HttpLimitOptions } from './admission/admission.js';
import { disconnectSignal, passOn, watchEnd } from './presence/node-response.js';
import { addFields } from './admission/response-fields.js';
import { unlessGone } from './presence/unless-gone.js';

export { ipKey, type IpKeyOptions } from './admission/ip-key.js';
export type { HttpLimiter, HttpLimitOptions } from './admission/admission.js';

/** What the plugin needs of a request of fastify 5. `ip` follows the option `trustProxy` of the server. */
export interface FastifyRequestLike {
  readonly ip: string;
  readonly raw: IncomingMessage;
}

/** The parts of a reply of fastify that are used. */
export interface FastifyReplyLike {
  readonly raw: ServerResponse;
  code(status: number): unknown;
  getHeader(name: string): unknown;
  header(name: string, value: string): unknown;
  type(contentType: string): unknown;
  send(body: unknown): unknown;
  /** Tells fastify that it does not send the answer. */
  hijack(): unknown;
}

export interface FastifyLimitOptions<Q extends FastifyRequestLike> extends HttpLimitOptions<Q> {
  /** The body of a refusal by request. Default: `message`. `denial` is null if the store did not answer. */
  readonly refusal?: (request: Q, denial: Denied | null) => unknown;
}

type Hook<Q, P> = (request: Q, reply: P) => Promise<unknown>;

/** A hook for one route or for a whole instance: `onRequest`, or `preHandler` where the key needs the parsed body. */
export function rateLimitHook<
  Q extends FastifyRequestLike = FastifyRequestLike,
  P extends FastifyReplyLike = FastifyReplyLike,
>(options: FastifyLimitOptions<Q>): Hook<Q, P> {
  checkHttpOptions(options, ['refusal']);
  return async (request, reply) => {
    const whenOver = watchEnd(reply.raw);
    const signal = options.wait === undefined ? undefined : disconnectSignal(reply.raw, whenOver);
    const addresses = () => [request.ip, request.raw.socket?.remoteAddress];
    const admission = await unlessGone(signal, admit(options, { request, addresses, signal }));
    if (admission === null) {
      // There is no answer, and no error of the app.
      reply.hijack();
      return undefined;
    }
    if (admission.kind === 'skipped') return undefined;
    const get = (name: string): string | undefined => reply.getHeader(name)?.toString();
    addFields({ get, set: (name, value) => reply.header(name, value) }, admission.headers);
    if (admission.kind === 'admitted') {
      passOn({ ...admission, headers: [] }, reply.raw, whenOver);
      return undefined;
    }
    reply.code(admission.status);
    if (options.refusal !== undefined) return reply.send(await options.refusal(request, admission.denial));
    reply.type(admission.contentType);
    return reply.send(admission.body);
  };
}

interface HookTarget {
  addHook(name: 'onRequest', hook: Hook<FastifyRequestLike, FastifyReplyLike>): unknown;
}

/** A plugin for fastify 5: limits every route of the instance that registers it. */
export const rateLimit = Object.assign(
  async (instance: HookTarget, options: FastifyLimitOptions<FastifyRequestLike>): Promise<void> => {
    instance.addHook('onRequest', rateLimitHook(options));
  },
  // Without this mark fastify gives the plugin a scope of its own, and the hook would see no route.
  { [Symbol.for('skip-override')]: true, [Symbol.for('fastify.display-name')]: 'headgate' },
);
