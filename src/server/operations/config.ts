import * as v from 'valibot';
import type { Limit } from '../../core/limit.js';
import type { ConfigLevelRef, ConfigView } from '../../limiter/api/config-api.js';
import type { RateLimiter } from '../../limiter/rate-limiter.js';
import { operation } from '../operation.js';
import {
  entityId,
  limitTexts,
  limitView,
  page,
  pageOf,
  pageOptions,
  parseLimits,
  resource,
  viewLimit,
} from '../request/schemas.js';

const policy = v.picklist(['block', 'allow', 'local']);

/** A limit of a config: with its options, which no bucket stores. */
const configuredLimit = v.object({
  ...limitView.entries,
  reserve: v.optional(
    v.pipe(
      v.record(v.string(), v.number()),
      v.description('By priority class: the share of the capacity that must stay.'),
    ),
  ),
  shadow: v.optional(v.pipe(v.literal(true), v.description('The limit refuses nothing.'))),
});

function viewConfigured(limit: Limit): v.InferOutput<typeof configuredLimit> {
  const { reserve, shadow } = limit;
  return {
    ...viewLimit(limit),
    ...(reserve === undefined ? {} : { reserve: { ...reserve } }),
    ...(shadow ? { shadow } : {}),
  };
}

const configView = v.object({
  limits: v.array(configuredLimit),
  onUnavailable: v.pipe(v.nullable(policy), v.description('The outage policy; only the system level has one.')),
});

/** With a misspelt name the request would read, change or delete the limits of a level above. */
const level = v.pipe(
  v.strictObject({ entityId: v.optional(entityId), resource: v.optional(resource) }),
  v.description('Both names: the entity on the resource. One: its default. None: the system.'),
);

type Level = v.InferOutput<typeof level>;

function refOf({ entityId: entity, resource: name }: Level): ConfigLevelRef {
  if (entity !== undefined) return name === undefined ? { entityId: entity } : { entityId: entity, resource: name };
  return name === undefined ? 'system' : { resource: name };
}

function viewConfig(config: ConfigView | null) {
  const { limits = [], onUnavailable = null } = config ?? {};
  return { limits: limits.map(viewConfigured), onUnavailable };
}

const change = v.strictObject({
  limits: v.optional(limitTexts),
  onUnavailable: v.optional(v.pipe(policy, v.description('For the system level only.'))),
  replace: v.optional(
    v.pipe(v.boolean(), v.description('Removes the limits that are not in the list. Default: they stay.')),
  ),
});

async function write(limiter: RateLimiter, at: Level, body: v.InferOutput<typeof change>): Promise<void> {
  const { onUnavailable, replace = false } = body;
  const limits = body.limits === undefined ? {} : { limits: parseLimits('body.limits', body.limits) };
  const config = onUnavailable === undefined ? limits : { ...limits, onUnavailable };
  const { config: api } = limiter;
  const ref = refOf(at);
  if (ref === 'system') return replace ? api.setSystem(config) : api.mergeSystem(config);
  if (!('entityId' in ref))
    return replace ? api.setResource(ref.resource, config) : api.mergeResource(ref.resource, config);
  const { entityId: entity, resource: name } = ref;
  if (name === undefined)
    return replace ? api.setEntityDefault(entity, config) : api.mergeEntityDefault(entity, config);
  return replace ? api.setEntity(entity, name, config) : api.mergeEntity(entity, name, config);
}

export const configOperations = [
  operation({
    id: 'getConfig',
    group: 'config',
    method: 'get',
    path: '/v1/config',
    role: 'admin',
    summary: 'The limits of one level. Empty where the level has none.',
    query: level,
    answer: configView,
    async handle({ limiter }, { query }) {
      return { body: viewConfig(await limiter.config.get(refOf(query))) };
    },
  }),
  operation({
    id: 'setConfig',
    group: 'config',
    method: 'put',
    path: '/v1/config',
    role: 'admin',
    summary: 'Sets limits of one level. The next config read of every process applies them.',
    query: level,
    body: change,
    answer: configView,
    async handle({ limiter }, { query, body }) {
      await write(limiter, query, body);
      return { body: viewConfig(await limiter.config.get(refOf(query))) };
    },
  }),
  operation({
    id: 'deleteConfig',
    group: 'config',
    method: 'delete',
    path: '/v1/config',
    role: 'admin',
    summary: 'Removes the limits of one level.',
    query: level,
    answer: configView,
    async handle({ limiter }, { query }) {
      await limiter.config.delete(refOf(query));
      return { body: viewConfig(null) };
    },
  }),
  operation({
    id: 'effectiveConfig',
    group: 'config',
    method: 'get',
    path: '/v1/config/effective',
    role: 'admin',
    summary: 'The limits that an entity has on a resource, and the level that they come from.',
    query: v.object({ entityId, resource }),
    answer: v.object({
      limits: v.array(configuredLimit),
      configSource: v.nullable(v.string()),
      onUnavailable: policy,
    }),
    async handle({ limiter }, { query }) {
      const { limits, configSource, onUnavailable } = await limiter.config.resolve(query.entityId, query.resource);
      return { body: { limits: limits.map(viewConfigured), configSource, onUnavailable } };
    },
  }),
  operation({
    id: 'listConfig',
    group: 'config',
    method: 'get',
    path: '/v1/config/levels',
    role: 'admin',
    summary: 'Every level that has limits.',
    query: v.object(page),
    answer: pageOf(
      v.object({
        level: v.object({ entityId: v.optional(v.string()), resource: v.optional(v.string()) }),
        ...configView.entries,
      }),
    ),
    async handle({ limiter }, { query }) {
      const { items, next } = await limiter.config.all(pageOptions(query));
      const views = items.map((entry) => ({
        level: entry.level === 'system' ? {} : { ...entry.level },
        ...viewConfig(entry),
      }));
      return { body: { items: views, next } };
    },
  }),
] as const;
