import * as v from 'valibot';
import type { Awaitable } from '../../backend.js';
import type { LimitStatus } from '../../core/bucket/decide.js';
import type { Decision } from '../../limiter/acquire/decision.js';
import type { AcquireRequest } from '../../limiter/acquire/request.js';
import { isPromise } from '../../limiter/outage/guard.js';
import { type HeaderFormat, rateLimitHeaders } from '../../integrations/http/admission/headers.js';
import { shownDenial, shownStatus } from '../access/hidden-reasons.js';
import { type Answer, type Asked, operation } from '../operation.js';
import { partitionKey } from '../answer/partition-key.js';
import { denialProblem } from '../answer/problem.js';
import { amounts, entityId, finite, limitTexts, parseLimits, resource } from '../request/schemas.js';
import { untilEnding } from '../live/until-ending.js';
import { leaseView, pauseView, statusView, viewLease, viewStatus } from '../answer/views.js';

const MAX_BATCH = 100;

const ask = v.strictObject({
  entityId,
  resource,
  consume: v.optional(amounts),
  limits: v.optional(
    v.pipe(limitTexts, v.description('Replace the configured limits; they have a bucket of their own.')),
  ),
  leaseTtlMs: v.optional(
    v.pipe(v.number(), v.safeInteger(), v.description('Makes a holder that expires after this time.')),
  ),
  portable: v.optional(
    v.pipe(v.boolean(), v.description('Makes a lease with a token also where only rates are taken.')),
  ),
  priority: v.optional(v.pipe(v.string(), v.description('The priority class, if a limit has a reserve against it.'))),
  atMost: v.optional(
    v.pipe(
      v.string(),
      v.description('The limit that is cut to what there is, at least to 1; `lease.consumed` says it.'),
    ),
  ),
  wait: v.optional(
    v.strictObject({
      timeoutMs: v.pipe(
        v.number(),
        v.safeInteger(),
        v.minValue(0),
        v.description('At most 290000, unless the server was started with another bound.'),
      ),
      maxWaiting: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(1))),
    }),
  ),
  onUnavailable: v.optional(v.picklist(['block', 'allow', 'local'])),
  atomic: v.optional(v.boolean()),
});

type AskBody = v.InferOutput<typeof ask>;

const decidedByView = v.picklist(['store', 'deny-cache', 'fallback', 'open']);

const grantView = v.object({
  granted: v.literal(true),
  lease: leaseView,
  statuses: v.array(statusView),
  decidedBy: decidedByView,
});

type GrantView = v.InferOutput<typeof grantView>;

/** The body of a denial: a problem, with the limits that refused. */
const denialView = v.object({
  type: v.string(),
  title: v.string(),
  status: v.number(),
  detail: v.string(),
  code: v.string(),
  'violated-policies': v.array(v.string()),
  reason: v.picklist(['exhausted', 'contended', 'impossible', 'paused']),
  retryAfterMs: v.pipe(v.nullable(v.number()), v.description('The exact wait; null: waiting does not help.')),
  violations: v.array(statusView),
  statuses: v.optional(v.array(statusView)),
  decidedBy: decidedByView,
  paused: v.optional(pauseView),
});

/** What an ask states instead of the configuration. */
function overridesIn({ limits, onUnavailable }: AskBody): readonly string[] {
  return [...(limits === undefined ? [] : ['limits']), ...(onUnavailable === undefined ? [] : ['onUnavailable'])];
}

/** JSON has no undefined: a field that was not sent is not in the body. */
function requestOf(body: AskBody): AcquireRequest {
  // A lease that holds slots must be settled by another request, so that it needs a token in any case.
  const portable = body.portable === true ? true : 'held';
  // Not by a spread, which takes ten times as long.
  const request: object = Object.assign({}, body, { portable });
  const { limits } = body;
  if (limits !== undefined) Object.assign(request, { limits: parseLimits('limits', limits) });
  return request as AcquireRequest;
}

/** An ask that waits ends when its client disconnects or the server ends. */
function acquire(asked: Asked, body: AskBody): Promise<Decision> {
  const { limiter, token, waiting } = asked;
  const request = requestOf(body);
  const { timeoutMs = 0 } = body.wait ?? {};
  if (timeoutMs === 0) return limiter.tryAcquire(request);
  return waiting.run(token, timeoutMs, async () =>
    untilEnding(asked.request.signal, asked.ending, async (signal) => limiter.tryAcquire({ ...request, signal })),
  );
}

type Granted = Extract<Decision, { granted: true }>;

function viewGrant(asked: Asked, granted: Granted): Awaitable<GrantView> {
  const lease = viewLease(granted.lease, asked);
  return isPromise(lease) ? lease.then((shown) => grantWith(granted, shown)) : grantWith(granted, lease);
}

function grantWith({ statuses, decidedBy }: Granted, lease: GrantView['lease']): GrantView {
  return { granted: true, lease, statuses: statuses.map(viewStatus), decidedBy };
}

/**
 * Gives back what a client does not get, because no other request would settle these leases before they expire. A client that
 * has disconnected is seen here, when the answer is complete, because signing a token takes time too; one that disconnects
 * later is seen by the server that sends the answer. An ask for rates only that did not wait stays counted.
 */
async function handOver(asked: Asked, granted: readonly Granted[]): Promise<Pick<Answer<never>, 'ifUndelivered'>> {
  const giveBack = async (): Promise<void> => {
    await Promise.all(granted.map(({ lease }) => lease.rollback()));
  };
  if (!asked.request.signal.aborted) return { ifUndelivered: giveBack };
  await giveBack();
  return {};
}

function mayBeLost(asks: readonly AskBody[], granted: readonly Granted[]): boolean {
  if (granted.length === 0) return false;
  return asks.some(({ wait }) => wait !== undefined) || granted.some(({ lease }) => lease.expiresAt !== null);
}

function headersOf(
  decision: {
    readonly granted: boolean;
    readonly statuses: readonly LimitStatus[];
    readonly retryAfterMs?: number | null;
  },
  format: HeaderFormat,
) {
  const { granted, statuses, retryAfterMs = null } = decision;
  return rateLimitHeaders({ granted, statuses, retryAfterMs }, { format, partitionKey });
}

async function decide(asked: Asked, body: AskBody): Promise<Answer<GrantView>> {
  const decision = await acquire(asked, body);
  if (decision.granted) {
    const view = viewGrant(asked, decision);
    const shown = isPromise(view) ? await view : view;
    const answer = { body: shown, headers: headersOf(decision, asked.headers) };
    return mayBeLost([body], [decision]) ? { ...answer, ...(await handOver(asked, [decision])) } : answer;
  }
  const problem = denialProblem(shownDenial(asked.token, decision));
  // A denial is a problem body, which the app sends as it is; the schema of the answer describes grants.
  return { status: problem.status, body: problem as unknown as GrantView, headers: headersOf(decision, asked.headers) };
}

const key = v.object({ entityId, resource });

const batchResult = v.union([
  grantView,
  v.looseObject({ granted: v.literal(false), status: v.number(), code: v.string() }),
]);

export const decideOperations = [
  operation({
    id: 'acquire',
    group: 'decide',
    method: 'post',
    path: '/v1/acquire',
    role: 'app',
    summary: 'Takes from all limits of the entity and its parents, or from none. A denial is 429 with the exact wait.',
    body: ask,
    answer: grantView,
    denial: denialView,
    refusals: [409, 422, 429],
    entitiesOf: ({ body }) => [body.entityId],
    overridesOf: ({ body }) => overridesIn(body),
    handle: (asked, { body }) => decide(asked, body),
  }),
  operation({
    id: 'acquireBatch',
    group: 'decide',
    method: 'post',
    path: '/v1/acquire/batch',
    role: 'app',
    summary: `Decides up to ${MAX_BATCH} independent asks. Each has a result of its own, in the order of the asks.`,
    body: v.strictObject({ asks: v.pipe(v.array(ask), v.minLength(1), v.maxLength(MAX_BATCH)) }),
    answer: v.object({ results: v.array(batchResult) }),
    entitiesOf: ({ body }) => body.asks.map((one) => one.entityId),
    overridesOf: ({ body }) => [...new Set(body.asks.flatMap(overridesIn))],
    async handle(asked, { body }) {
      const { problemOf } = asked;
      const refused = (error: unknown) => ({ ...problemOf(error), granted: false as const });
      const outcomes = await Promise.allSettled(body.asks.map(async (one) => acquire(asked, one)));
      const results = await Promise.all(
        outcomes.map(async (outcome) => {
          if (outcome.status === 'rejected') return refused(outcome.reason);
          const decision = outcome.value;
          if (!decision.granted)
            return { ...denialProblem(shownDenial(asked.token, decision)), granted: false as const };
          try {
            return await viewGrant(asked, decision);
          } catch (error) {
            return refused(error);
          }
        }),
      );
      const decisions = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
      const granted = decisions.filter((decision) => decision.granted);
      return { body: { results }, ...(mayBeLost(body.asks, granted) ? await handOver(asked, granted) : {}) };
    },
  }),
  operation({
    id: 'peek',
    group: 'decide',
    method: 'post',
    path: '/v1/peek',
    role: 'app',
    summary: 'The statuses of the decision that an ask would get now. Takes nothing.',
    body: ask,
    answer: v.object({ statuses: v.array(statusView) }),
    refusals: [409],
    entitiesOf: ({ body }) => [body.entityId],
    overridesOf: ({ body }) => overridesIn(body),
    async handle({ limiter, token }, { body }) {
      const statuses = await limiter.peek(requestOf(body));
      return { body: { statuses: statuses.map((status) => viewStatus(shownStatus(token, status))) } };
    },
  }),
  operation({
    id: 'status',
    group: 'decide',
    method: 'get',
    path: '/v1/status',
    role: 'app',
    summary: 'The state of every limit of every level.',
    query: key,
    answer: v.object({ statuses: v.array(statusView) }),
    refusals: [409],
    entitiesOf: ({ query }) => [query.entityId],
    async handle({ limiter, token }, { query }) {
      const statuses = await limiter.status(query);
      return { body: { statuses: statuses.map((status) => viewStatus(shownStatus(token, status))) } };
    },
  }),
  operation({
    id: 'available',
    group: 'decide',
    method: 'get',
    path: '/v1/available',
    role: 'app',
    summary: 'What is available of each limit, at the level that has the least.',
    query: key,
    answer: v.object({
      available: v.record(v.string(), v.pipe(v.nullable(v.number()), v.description('null: unlimited.'))),
    }),
    refusals: [409],
    entitiesOf: ({ query }) => [query.entityId],
    async handle({ limiter }, { query }) {
      const available = Object.entries(await limiter.available(query));
      return { body: { available: Object.fromEntries(available.map(([name, left]) => [name, finite(left)])) } };
    },
  }),
] as const;
