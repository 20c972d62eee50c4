import * as v from 'valibot';
import { EntityNotFound } from '../../core/errors.js';
import type { LeaseView } from '../../limiter/api/leases-api.js';
import type { Lease } from '../../limiter/lease/lease.js';
import { FallbackLeases } from '../answer/fallback-leases.js';
import { type Asked, operation } from '../operation.js';
import { refuseOtherEntity } from '../access/access.js';
import { amounts, deltas, entityId, instant, page, pageOf, pageOptions, resource } from '../request/schemas.js';
import { type LeaseBody, leaseView, viewWithToken } from '../answer/views.js';

/** With 32 slot limits of the longest names at 8 levels a token has about 58,000 characters. */
const token = v.pipe(v.string(), v.maxLength(60_000), v.description('The token of the lease.'));
const answer = v.object({ lease: leaseView });

const repeatMark = v.pipe(
  instant,
  v.description(
    'For a request that got no answer and is sent again: `expiresAt` of the lease, as the client knows it. If the lease has ended before that time, and the store has no trace of it, nothing is charged.',
  ),
);

interface Sent {
  readonly token: string;
  readonly repeat?: string | undefined;
}

type Perform = (lease: Lease) => Promise<void>;

/** Continues the lease of a token, if the caller's token covers its entity. */
async function operateStored(asked: Asked, { token: text, repeat }: Sent, perform: Perform): Promise<LeaseBody> {
  const lease = await asked.limiter.leases.resumeRepeat(text, repeat === undefined ? 0 : Date.parse(repeat));
  // First, so that closing the limiter does not end the lease, whatever comes of the request.
  const renewed = await lease.token();
  refuseOtherEntity(asked.token, lease.entityId);
  await perform(lease);
  return viewWithToken(lease, renewed);
}

/**
 * A lease that was granted in an outage has changed nothing in the store. If this process does not have it, nothing is due:
 * its slots end with their expiry in the memory of the process that granted it.
 */
async function operateFallback(asked: Asked, { token: text }: Sent, perform: Perform): Promise<LeaseBody> {
  const { lease, shown } = await asked.fallbackLeases.find(text, asked.namespace);
  refuseOtherEntity(asked.token, shown.entityId);
  if (lease !== null) {
    await perform(lease);
    return viewWithToken(lease, text);
  }
  const { id, expiresAt, consumed } = shown;
  return { id, token: text, expiresAt, consumed };
}

/** An operation of a lease. A repeated one gets the same answer. */
function leaseOperation<B extends v.ObjectEntries>(
  id: string,
  summary: string,
  entries: B,
  perform: (lease: Lease, body: v.InferOutput<v.StrictObjectSchema<B, undefined>>) => Promise<void>,
) {
  const body = v.strictObject({ token, repeat: v.optional(repeatMark), ...entries });
  return operation({
    id: `${id}Lease`,
    group: 'leases',
    method: 'post',
    path: `/v1/leases/${id}`,
    role: 'app',
    summary: `${summary} A repeated request gets the same answer.`,
    body,
    answer,
    refusals: [409],
    async handle(asked, input) {
      const sent = input.body as v.InferOutput<v.StrictObjectSchema<B, undefined>> & Sent;
      const operate = FallbackLeases.isToken(sent.token) ? operateFallback : operateStored;
      return { body: { lease: await operate(asked, sent, (lease) => perform(lease, sent)) } };
    },
  });
}

const listed = v.object({
  id: v.string(),
  entityId: v.string(),
  resource: v.string(),
  amounts: v.record(v.string(), v.number()),
  caller: v.nullable(v.string()),
  acquiredAt: v.nullable(v.string()),
  expiresAt: v.string(),
  portable: v.boolean(),
});

function viewListed(lease: LeaseView): v.InferOutput<typeof listed> {
  const { id, entityId: entity, resource: name, caller = null, acquiredAt, expiresAt, portable = false } = lease;
  return {
    id,
    entityId: entity,
    resource: name,
    amounts: { ...lease.amounts },
    caller,
    acquiredAt: acquiredAt?.toISOString() ?? null,
    expiresAt: expiresAt.toISOString(),
    portable,
  };
}

const where = { entityId: v.optional(entityId), resource: v.optional(resource) };

function ownerOf(query: { readonly entityId?: string | undefined; readonly resource?: string | undefined }) {
  return {
    ...(query.entityId === undefined ? {} : { entityId: query.entityId }),
    ...(query.resource === undefined ? {} : { resource: query.resource }),
  };
}

export const leaseOperations = [
  leaseOperation('settle', 'States the real totals of the named limits.', { amounts }, (lease, body) =>
    lease.settle(body.amounts),
  ),
  leaseOperation(
    'adjust',
    'Adds to what was taken, or gives part of it back.',
    { amounts: deltas, operationId: v.pipe(v.string(), v.description('Makes a repeated request count once.')) },
    (lease, { amounts: sent, operationId }) => lease.adjust(sent, { operationId }),
  ),
  leaseOperation(
    'extend',
    'Moves the expiry.',
    {
      ttlMs: v.optional(v.pipe(v.number(), v.safeInteger(), v.description('From now. Default: that of the acquire.'))),
    },
    (lease, { ttlMs }) => lease.extend(ttlMs),
  ),
  leaseOperation('release', 'Gives the slots back now; the lease stays open for settle.', {}, (lease) =>
    lease.release(),
  ),
  leaseOperation(
    'commit',
    'Settles if amounts are given, and gives the slots back.',
    { amounts: v.optional(amounts) },
    (lease, { amounts: actuals }) => lease.commit(actuals),
  ),
  leaseOperation('rollback', 'Gives everything back.', {}, (lease) => lease.rollback()),
  operation({
    id: 'listLeases',
    group: 'leases',
    method: 'get',
    path: '/v1/leases',
    role: 'admin',
    summary: 'The leases that have a holder: of an entity and resource, of an entity, or of the namespace.',
    query: v.strictObject({ ...where, ...page }),
    answer: pageOf(listed),
    async handle({ limiter }, { query }) {
      const { items, next } = await limiter.leases.list({ ...ownerOf(query), ...pageOptions(query) });
      return { body: { items: items.map(viewListed), next } };
    },
  }),
  operation({
    id: 'endLease',
    group: 'leases',
    method: 'delete',
    path: '/v1/leases/{id}',
    role: 'admin',
    summary: 'Ends a lease by its id, as its expiry would. For leases whose process is gone.',
    params: v.object({ id: v.string() }),
    query: v.strictObject(where),
    answer: v.object({ released: v.literal(true) }),
    refusals: [404],
    async handle({ limiter }, { params, query }) {
      if (!(await limiter.leases.release(params.id, ownerOf(query)))) throw new EntityNotFound(params.id);
      return { body: { released: true as const } };
    },
  }),
];
