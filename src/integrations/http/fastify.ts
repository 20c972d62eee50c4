import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Denied } from '../../limiter/acquire/decision.js';
import { admit, checkHttpOptions, type HttpLimitOptions } from './admission.js';
import { disconnectSignal, passOn } from './node-response.js';
import { addFields } from './response-fields.js';

export { ipKey, type IpKeyOptions } from './ip-key.js';
export type { HttpLimiter, HttpLimitOptions } from './admission.js';

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
    const signal = options.wait === undefined ? undefined : disconnectSignal(reply.raw);
    const admission = await admit(options, { request, address: () => request.ip || null, signal });
    if (admission.kind === 'skipped') return undefined;
    const get = (name: string): string | undefined => reply.getHeader(name)?.toString();
    addFields({ get, set: (name, value) => reply.header(name, value) }, admission.headers);
    if (admission.kind === 'admitted') {
      passOn({ ...admission, headers: [] }, reply.raw);
      return undefined;
    }
    reply.code(admission.status);
    if (options.refusal !== undefined) return reply.send(options.refusal(request, admission.denial));
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
