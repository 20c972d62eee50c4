import { HeadgateClient, type RemoteDecision, type RemoteRequest } from '../../../src/client/client.js';
import { type ProblemBody, RemoteError } from '../../../src/client/http.js';
import type { RemoteLease } from '../../../src/client/remote-lease.js';
import { ValidationError } from '../../../src/core/errors.js';
import { memory } from '../../../src/index.js';
import type { LimiterOptions } from '../../../src/limiter/options.js';
import type { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { createServer } from '../../../src/server/server.js';
import { type Fixture, limits, openFixture } from '../../../src/testing/conformance/kit/fixture.js';
import type { FakeClock } from '../../../src/testing/fake-clock.js';
import { SECRET } from './request-server.js';

/** Whether the asks of a case are portable unless they say otherwise. Over HTTP only such a lease can correct rates. */
export type Asks = 'portable' | 'as written';

/** The environment of a conformance case whose decisions go through the client and a server on memory. */
export async function openClientFixture(clock: FakeClock, asks: Asks): Promise<Fixture> {
  const base = await openFixture(memory(), clock, async () => {});
  const limiter = async (options: LimiterOptions = {}): Promise<RateLimiter> => {
    const opened = await base.limiter({ leaseSecrets: [SECRET], ...options });
    return behindClient(opened, options.namespace ?? base.namespace, asks);
  };
  return { ...base, limiter, limited: async (...rules) => limiter({ limits: limits(...rules) }) };
}

/** A limiter that decides through a client of its own server, without a socket. The rest of it prepares or checks a case. */
function behindClient(limiter: RateLimiter, namespace: string, asks: Asks): RateLimiter {
  // Cases on a fake clock wait for hours, and the default bound of a server is minutes.
  const server = createServer(limiter, { namespace, maxWaitMs: 86_400_000 });
  const fetching: typeof fetch = (input, init) => server.fetch(new Request(input, init));
  const client = new HeadgateClient('http://headgate.test', { fetch: fetching });
  const asked = (request: RemoteRequest): RemoteRequest =>
    asks === 'portable' ? { portable: true, ...request } : request;
  // The client has no charges: its size is spent. These calls reach the operations of the server without it.
  const post = async (operation: 'charge' | 'credit', request: unknown): Promise<void> => {
    const headers = { 'headgate-namespace': namespace };
    const url = `http://headgate.test/v1/${operation}`;
    const response = await server.fetch(new Request(url, { method: 'POST', headers, body: JSON.stringify(request) }));
    if (!response.ok) throw new RemoteError((await response.json()) as ProblemBody);
  };
  const remote = {
    charge: async (request: unknown) => post('charge', request),
    credit: async (request: unknown) => post('credit', request),
    tryAcquire: async (request: RemoteRequest) => withTokenMethod(await client.tryAcquire(asked(request))),
    acquire: async (request: RemoteRequest) => likeLease(await client.acquire(asked(request))),
    run: client.run.bind(client),
    peek: client.peek.bind(client),
    status: client.status.bind(client),
    available: client.available.bind(client),
    in: async (other: string, options?: { readonly principal?: string }) =>
      behindClient(await limiter.in(other, options), other, asks),
  };
  return overlay(limiter, remote);
}

function withTokenMethod(decision: RemoteDecision): RemoteDecision {
  return decision.granted ? { ...decision, lease: likeLease(decision.lease) } : decision;
}

/** The token of a lease is a method in the library, because signing may need I/O, and a field in the client. */
function likeLease(lease: RemoteLease): RemoteLease {
  const token = async (): Promise<string> => {
    if (lease.token === null) throw new ValidationError('portable', 'true', false);
    return lease.token;
  };
  return overlay(lease, { token });
}

/** The target with some members replaced. */
function overlay<T extends object>(target: T, members: object): T {
  return new Proxy(target, {
    get: (_, name) => {
      if (Object.hasOwn(members, name)) return Reflect.get(members, name) as unknown;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
