import type { ServerResponse } from 'node:http';
import { disconnectSignal, watchEnd } from './node-response.js';

/**
 * Aborts when the client of a request leaves. `env`: what the server gives with the request. The signal of @hono/node-server does not
 * abort if the response waits for an earlier one of its connection, but `env` has this response.
 */
export function leftSignal(signal: AbortSignal, env: unknown): AbortSignal {
  const { outgoing } = (env ?? {}) as { readonly outgoing?: ServerResponse };
  if (typeof outgoing?.once !== 'function') return signal;
  return AbortSignal.any([signal, disconnectSignal(outgoing, watchEnd(outgoing))]);
}
