import * as v from 'valibot';
import { EntityNotFound } from '../../core/errors.js';
import type { LeaseView } from '../../limiter/api/leases-api.js';
import type { Lease } from '../../limiter/lease/lease.js';
import { type Asked, operation } from '../operation.js';
import { refuseOtherEntity } from '../access.js';
import { amounts, deltas, entityId, page, pageOf, pageOptions, resource } from '../schemas.js';
import { leaseView, viewLease } from '../views.js';

const token = v.pipe(v.string(), v.maxLength(20_000), v.description('The token of the lease.'));
const answer = v.object({ lease: leaseView });

/** Continues the lease of a token, if the caller's token covers its entity. */
async function resume({ limiter, token: access }: Asked, text: string): Promise<Lease> {
  const lease = await limiter.leases.resume(text);
  refuseOtherEntity(access, lease.entityId);
  return lease;
}

/** An operation of a lease. A repeated one gets the same answer. */
function leaseOperation<B extends v.ObjectEntries>(
  id: string,
  summary: string,
  entries: B,
  perform: (lease: Lease, body: v.InferOutput<v.StrictObjectSchema<B, undefined>>) => Promise<void>,
) {
  const body = v.strictObject({ token, ...entries });
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
      const sent = input.body as v.InferOutput<v.StrictObjectSchema<B, undefined>> & { readonly token: string };
      const lease = await resume(asked, sent.token);
      await perform(lease, sent);
      return { body: { lease: await viewLease(lease) } };
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
    query: v.object({ ...where, ...page }),
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
    query: v.object(where),
    answer: v.object({ released: v.literal(true) }),
    refusals: [404],
    async handle({ limiter }, { params, query }) {
      if (!(await limiter.leases.release(params.id, ownerOf(query)))) throw new EntityNotFound(params.id);
      return { body: { released: true as const } };
    },
  }),
];
