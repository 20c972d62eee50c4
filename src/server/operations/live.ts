import * as v from 'valibot';
import { Refusal } from '../access/access.js';
import { type AccessToken, coversEntity, coversNamespace, EVERY_NAMESPACE } from '../access/access-token.js';
import type { ServerEvent } from '../live/event-hub.js';
import { shownEvent } from '../access/hidden-reasons.js';
import { operation } from '../operation.js';
import { serverProblem } from '../answer/problem.js';
import { namespaceName, pageOf } from '../request/schemas.js';

const LONGEST_MS = 30_000;

const waitingView = v.object({
  entityId: v.string(),
  resource: v.string(),
  limit: v.pipe(
    v.nullable(v.string()),
    v.description('null: the calls wait for the end of a pause, or ask again because other writers won.'),
  ),
  priority: v.nullable(v.string()),
  depth: v.pipe(v.number(), v.description('How many calls wait.')),
  oldestWaitMs: v.number(),
});

/** Which events a token may see, in one namespace; null: in every namespace. */
function wantedBy(token: AccessToken | null, namespace: string | null) {
  return ({ data }: ServerEvent): boolean => {
    const { namespace: of, entityId } = data as { readonly namespace?: string; readonly entityId?: string | null };
    // An event without a namespace concerns the store: its text may name addresses.
    if (of === undefined) return token === null || token.role === 'admin';
    if (namespace !== null && of !== namespace) return false;
    return token?.entityPrefix === undefined || (typeof entityId === 'string' && coversEntity(token, entityId));
  };
}

/** The namespace whose events a request gets; null: every namespace. */
function scopeOf(token: AccessToken | null, asked: string | undefined): string | null {
  if (token !== null && asked !== undefined && !coversNamespace(token, asked)) {
    throw new Refusal(serverProblem('access.denied', 'The token is for another namespace'));
  }
  if (asked !== undefined) return asked;
  return token === null || token.namespace === EVERY_NAMESPACE ? null : token.namespace;
}

export const liveOperations = [
  operation({
    id: 'events',
    group: 'live',
    method: 'get',
    path: '/v1/events',
    role: 'app',
    summary: 'Decisions, outages and changes of this server as server-sent events: those that the token covers.',
    query: v.strictObject({
      namespace: v.optional(v.pipe(namespaceName, v.description('Default: every namespace that the token reaches.'))),
      forMs: v.optional(
        v.pipe(
          v.string(),
          v.regex(/^\d{1,5}$/),
          v.description(
            `Ends the stream after this time, at most ${LONGEST_MS}: for clients behind a proxy that buffers.`,
          ),
        ),
      ),
    }),
    answer: v.pipe(v.string(), v.description('text/event-stream')),
    handle: async ({ events, eventStreams, request: { signal }, token }, { query: { namespace, forMs } }) => {
      const isWanted = wantedBy(token, scopeOf(token, namespace));
      const show = (event: ServerEvent): ServerEvent => shownEvent(token, event);
      const onEnd = eventStreams.begin(token);
      if (forMs === undefined) return { body: '', stream: events.stream(signal, isWanted, show, onEnd) };
      const end = AbortSignal.timeout(Math.min(LONGEST_MS, Number(forMs)));
      return { body: '', stream: events.stream(AbortSignal.any([signal, end]), isWanted, show, onEnd) };
    },
  }),
  operation({
    id: 'waiting',
    group: 'live',
    method: 'get',
    path: '/v1/waiting',
    role: 'admin',
    summary: 'The calls of this server that wait: one line for each limit and priority class.',
    answer: pageOf(waitingView),
    // It makes no call to the store: the waiting calls of a server are of most interest in an outage.
    handle: ({ limiter }) => ({ body: { items: limiter.waiting().map((line) => ({ ...line })), next: null } }),
  }),
] as const;
