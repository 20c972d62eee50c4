import * as v from 'valibot';
import type { LimitStatus } from '../../core/bucket/decide.js';
import type { Decision } from '../../limiter/acquire/decision.js';
import type { AcquireRequest } from '../../limiter/acquire/request.js';
import { type HeaderFormat, rateLimitHeaders } from '../../integrations/http/headers.js';
import { type Answer, type Asked, operation } from '../operation.js';
import { partitionKey } from '../partition-key.js';
import { denialProblem } from '../problem.js';
import { amounts, entityId, finite, limitTexts, parseLimits, present, resource } from '../schemas.js';
import { leaseView, pauseView, statusView, viewLease, viewStatus } from '../views.js';

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
  wait: v.optional(
    v.strictObject({
      timeoutMs: v.pipe(v.number(), v.safeInteger(), v.minValue(0)),
      maxWaiting: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(0))),
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

function requestOf({ limits, portable, wait, ...body }: AskBody, signal: AbortSignal): AcquireRequest {
  const own = limits === undefined ? {} : { limits: parseLimits('limits', limits) };
  const waiting = wait === undefined ? {} : { wait: present(wait) };
  // A lease that holds slots must be settled by another request, so that it needs a token in any case.
  return { ...present(body), ...own, ...waiting, portable: portable === true ? true : 'held', signal };
}

/** Gives the lease back if its client has disconnected meanwhile: no other request would settle it before it expires. */
async function viewGrant(
  { lease, statuses, decidedBy }: Extract<Decision, { granted: true }>,
  signal: AbortSignal,
): Promise<GrantView> {
  if (signal.aborted) await lease.rollback();
  return { granted: true, lease: await viewLease(lease), statuses: statuses.map(viewStatus), decidedBy };
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

async function decide({ limiter, signal, headers }: Asked, body: AskBody): Promise<Answer<GrantView>> {
  const decision = await limiter.tryAcquire(requestOf(body, signal));
  if (decision.granted) return { body: await viewGrant(decision, signal), headers: headersOf(decision, headers) };
  const problem = denialProblem(decision);
  // A denial is a problem body, which the app sends as it is; the schema of the answer describes grants.
  return { status: problem.status, body: problem as unknown as GrantView, headers: headersOf(decision, headers) };
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
    async handle(asked, { body }) {
      const { limiter, signal, problemOf } = asked;
      const refused = (error: unknown) => ({ ...problemOf(error), granted: false as const });
      const outcomes = await Promise.allSettled(
        body.asks.map(async (one) => limiter.tryAcquire(requestOf(one, signal))),
      );
      // Only now, when no ask waits any more: a client that disconnects during a wait loses every grant of the batch.
      const results = await Promise.all(
        outcomes.map(async (outcome) => {
          if (outcome.status === 'rejected') return refused(outcome.reason);
          const decision = outcome.value;
          if (decision.granted) return viewGrant(decision, signal).catch(refused);
          return { ...denialProblem(decision), granted: false as const };
        }),
      );
      return { body: { results } };
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
    async handle({ limiter, signal }, { body }) {
      const statuses = await limiter.peek(requestOf(body, signal));
      return { body: { statuses: statuses.map(viewStatus) } };
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
    async handle({ limiter }, { query }) {
      const statuses = await limiter.status(query);
      return { body: { statuses: statuses.map(viewStatus) } };
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
