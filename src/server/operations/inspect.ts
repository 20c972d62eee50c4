import * as v from 'valibot';
import { ValidationError } from '../../core/errors.js';
import type { AuditEvent } from '../../limiter/api/audit-api.js';
import type { BucketView } from '../../limiter/api/buckets-api.js';
import type { Usage, UsageRange } from '../../limiter/api/usage-api.js';
import { operation } from '../operation.js';
import {
  entityId,
  finite,
  instant,
  limitView,
  page,
  pageOf,
  pageOptions,
  resource,
  viewLimit,
} from '../request/schemas.js';
import { storedPauseView, viewStoredPause } from '../answer/views.js';

const bucketView = v.object({
  entityId: v.string(),
  resource: v.string(),
  limits: v.array(v.object({ limit: limitView, available: v.nullable(v.number()), consumed: v.number() })),
  holders: v.number(),
  acquires: v.number(),
  expired: v.number(),
  paused: v.optional(storedPauseView),
});

function viewBucket({ limits, entityId: entity, resource: name, holders, acquires, expired, paused }: BucketView) {
  const views = limits.map(({ limit, available, consumed }) => ({
    limit: viewLimit(limit),
    available: finite(available),
    consumed,
  }));
  return { entityId: entity, resource: name, limits: views, holders, acquires, expired, ...viewStoredPause(paused) };
}

function ownerOf(query: { readonly entityId?: string | undefined; readonly resource?: string | undefined }) {
  const { entityId: entity, resource: name } = query;
  if (entity !== undefined && name === undefined) return { entityId: entity };
  if (entity === undefined && name !== undefined) return { resource: name };
  throw new ValidationError('query', 'either entityId or resource', query);
}

const usageView = v.object({
  entityId: v.string(),
  resource: v.string(),
  window: v.picklist(['hourly', 'daily', 'monthly']),
  windowStart: v.string(),
  windowEnd: v.string(),
  tokens: v.record(v.string(), v.number()),
  acquires: v.number(),
  expired: v.number(),
});

function viewUsage({ windowStart, windowEnd, tokens, ...usage }: Usage) {
  return {
    ...usage,
    windowStart: windowStart.toISOString(),
    windowEnd: windowEnd.toISOString(),
    tokens: { ...tokens },
  };
}

const range = {
  entityId: v.optional(entityId),
  resource,
  window: v.picklist(['hourly', 'daily', 'monthly']),
  from: v.optional(instant),
  to: v.optional(instant),
};

type RangeQuery = v.InferOutput<v.ObjectSchema<typeof range, undefined>>;

function rangeOf({ entityId: entity, resource: name, window, from, to }: RangeQuery): UsageRange {
  return {
    resource: name,
    window,
    ...(entity === undefined ? {} : { entityId: entity }),
    ...(from === undefined ? {} : { from: new Date(from) }),
    ...(to === undefined ? {} : { to: new Date(to) }),
  };
}

const auditView = v.object({
  id: v.string(),
  at: v.string(),
  principal: v.nullable(v.string()),
  action: v.string(),
  subject: v.string(),
  before: v.unknown(),
  after: v.unknown(),
});

function viewAudit({ at, ...event }: AuditEvent) {
  return { ...event, at: at.toISOString() };
}

export const inspectOperations = [
  operation({
    id: 'listBuckets',
    group: 'buckets',
    method: 'get',
    path: '/v1/buckets',
    role: 'admin',
    summary: 'The buckets of an entity, or of a resource over all entities.',
    query: v.object({ entityId: v.optional(entityId), resource: v.optional(resource), ...page }),
    answer: pageOf(bucketView),
    async handle({ limiter }, { query }) {
      const { items, next } = await limiter.buckets.list({ ...ownerOf(query), ...pageOptions(query) });
      return { body: { items: items.map(viewBucket), next } };
    },
  }),
  operation({
    id: 'getBucket',
    group: 'buckets',
    method: 'get',
    path: '/v1/bucket',
    role: 'admin',
    summary: 'One bucket. null: nothing was ever taken.',
    query: v.object({ entityId, resource: v.string() }),
    answer: v.object({ bucket: v.nullable(bucketView) }),
    async handle({ limiter }, { query }) {
      const bucket = await limiter.buckets.get(query);
      return { body: { bucket: bucket === null ? null : viewBucket(bucket) } };
    },
  }),
  operation({
    id: 'resetBucket',
    group: 'buckets',
    method: 'post',
    path: '/v1/bucket/reset',
    role: 'admin',
    summary: 'Fills a bucket and removes its holders.',
    body: v.strictObject({ entityId, resource: v.string() }),
    answer: v.object({ reset: v.pipe(v.boolean(), v.description('false: there was no such bucket.')) }),
    async handle({ limiter }, { body }) {
      return { body: { reset: await limiter.buckets.reset(body) } };
    },
  }),
  operation({
    id: 'usage',
    group: 'usage',
    method: 'get',
    path: '/v1/usage',
    role: 'app',
    summary: 'Consumption by entity and window. A token with an entity prefix must name an entity.',
    query: v.strictObject({ ...range, ...page }),
    answer: pageOf(usageView),
    // Without an entity the query covers all of them, which only a token without a prefix may see.
    entitiesOf: ({ query }) => [query.entityId ?? ''],
    async handle({ limiter }, { query }) {
      const { items, next } = await limiter.usage.query({ ...rangeOf(query), ...pageOptions(query) });
      return { body: { items: items.map(viewUsage), next } };
    },
  }),
  operation({
    id: 'usageSummary',
    group: 'usage',
    method: 'get',
    path: '/v1/usage/summary',
    role: 'app',
    summary: 'The sum and the average over all windows of a range.',
    query: v.strictObject(range),
    answer: v.object({
      total: v.record(v.string(), v.number()),
      average: v.record(v.string(), v.number()),
      acquires: v.number(),
      expired: v.number(),
      count: v.number(),
      from: v.nullable(v.string()),
      to: v.nullable(v.string()),
    }),
    entitiesOf: ({ query }) => [query.entityId ?? ''],
    async handle({ limiter }, { query }) {
      const { from, to, total, average, ...summary } = await limiter.usage.summary(rangeOf(query));
      const ends = { from: from?.toISOString() ?? null, to: to?.toISOString() ?? null };
      return { body: { ...summary, ...ends, total: { ...total }, average: { ...average } } };
    },
  }),
  operation({
    id: 'audit',
    group: 'audit',
    method: 'get',
    path: '/v1/audit',
    role: 'admin',
    summary: 'Who changed what, in the order of time or its reverse.',
    query: v.strictObject({
      entityId: v.optional(entityId),
      resource: v.optional(resource),
      system: v.optional(v.literal('true')),
      order: v.optional(v.pipe(v.picklist(['asc', 'desc']), v.description('desc: the newest first. Default: asc.'))),
      ...page,
    }),
    answer: pageOf(auditView),
    async handle({ limiter }, { query }) {
      const { entityId: entity, resource: name, system, order } = query;
      const subject = {
        ...(entity === undefined ? {} : { entityId: entity }),
        ...(name === undefined ? {} : { resource: name }),
        ...(system === undefined ? {} : { system: true }),
        ...(order === undefined ? {} : { order }),
      };
      const { items, next } = await limiter.audit.list({ ...subject, ...pageOptions(query) });
      return { body: { items: items.map(viewAudit), next } };
    },
  }),
] as const;
