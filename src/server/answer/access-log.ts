/** One line of the access log. It has no secret and no body. */
export interface AccessEntry {
  /** When the request came, as ISO 8601. */
  readonly at: string;
  /** null: the request is no operation of the API, such as a page, a probe or a route that does not exist. */
  readonly operation: string | null;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  /** The name of the token; null without one. */
  readonly token: string | null;
  readonly namespace: string | null;
  readonly durationMs: number;
}

type Known = Pick<AccessEntry, 'operation' | 'token' | 'namespace'>;

const NOTHING: Known = { operation: null, token: null, namespace: null };

/**
 * What the app has found out about a request. By the request, because the answer to HEAD is another object than the one
 * to GET.
 */
const knownOf = new WeakMap<Request, Known>();

export function noteCaller(request: Request, known: Known): void {
  knownOf.set(request, known);
}

/** Reports a request that was refused before it was read. */
export function logRefused(
  onAccess: (entry: AccessEntry) => void,
  refused: Pick<AccessEntry, 'method' | 'path' | 'status'>,
): void {
  onAccess({ at: new Date().toISOString(), ...NOTHING, ...refused, durationMs: 0 });
}

/** Answers a request, and reports it, whichever part of the server answered. */
export async function logAnswer(
  request: Request,
  onAccess: (entry: AccessEntry) => void,
  answer: () => Response | Promise<Response>,
): Promise<Response> {
  const [at, startMs] = [new Date(), performance.now()];
  const response = await answer();
  const { operation, token, namespace } = knownOf.get(request) ?? NOTHING;
  onAccess({
    at: at.toISOString(),
    operation,
    method: request.method,
    path: new URL(request.url).pathname,
    status: response.status,
    token,
    namespace,
    durationMs: performance.now() - startMs,
  });
  return response;
}
