import * as v from 'valibot';
import { EntityNotFound } from '../../core/errors.js';
import type { Entity } from '../../limiter/api/entities-api.js';
import { operation } from '../operation.js';
import { entityId, entityName, page, pageOf, pageOptions, present } from '../request/schemas.js';
import { storedPauseView, viewStoredPause } from '../answer/views.js';
import { strictRecord } from '../request/strict-record.js';

const metadata = strictRecord(v.string(), v.unknown());

const entityView = v.object({
  id: v.string(),
  name: v.nullable(v.string()),
  parentId: v.nullable(v.string()),
  cascade: v.boolean(),
  bypass: v.optional(v.pipe(v.literal(true), v.description('The limits of its own level refuse nothing.'))),
  metadata,
  version: v.number(),
  createdAt: v.string(),
  paused: v.optional(storedPauseView),
});

const withBypass = v.pipe(v.boolean(), v.description('Whether the limits of its own level refuse nothing.'));

/** A URL cannot have them: every client resolves such a segment of a path. */
const NO_DOTS = 'another id than . and ..';

const idParam = v.object({ id: entityId });

function viewEntity({ id, name, parentId, cascade, bypass, metadata: data, version, createdAt, paused }: Entity) {
  return {
    id,
    name,
    parentId,
    cascade,
    ...(bypass === true ? { bypass } : {}),
    metadata: { ...data },
    version,
    createdAt: createdAt.toISOString(),
    ...viewStoredPause(paused),
  };
}

/** Whether the id or the name contains the text, in any case. */
function matches({ id, name }: Entity, lowerText: string): boolean {
  return id.toLowerCase().includes(lowerText) || (name ?? '').toLowerCase().includes(lowerText);
}

export const entityOperations = [
  operation({
    id: 'createEntity',
    group: 'entities',
    method: 'post',
    path: '/v1/entities',
    role: 'admin',
    summary: 'Creates the record of an entity.',
    body: v.strictObject({
      id: v.pipe(
        entityId,
        v.check((id) => id !== '.' && id !== '..', NO_DOTS),
      ),
      name: v.optional(entityName),
      parentId: v.optional(entityId),
      cascade: v.optional(v.pipe(v.boolean(), v.description('Whether its spending also counts for its parent.'))),
      bypass: v.optional(withBypass),
      metadata: v.optional(metadata),
    }),
    status: 201,
    answer: entityView,
    refusals: [409],
    async handle({ limiter }, { body }) {
      return { body: viewEntity(await limiter.entities.create(present(body))) };
    },
  }),
  operation({
    id: 'listEntities',
    group: 'entities',
    method: 'get',
    path: '/v1/entities',
    role: 'admin',
    summary: 'The entities that have a record, the children of one, or one.',
    query: v.strictObject({
      id: v.optional(v.pipe(entityId, v.description('Only this entity: an empty page if it has no record.'))),
      parentId: v.optional(entityId),
      search: v.optional(
        v.pipe(
          v.string(),
          v.maxLength(256),
          v.description('Keeps those of the page whose id or name has this text: a page may be empty with a next one.'),
        ),
      ),
      ...page,
    }),
    answer: pageOf(entityView),
    async handle({ limiter }, { query }) {
      const { id, parentId, search = '' } = query;
      if (id !== undefined) {
        const entity = await limiter.entities.get(id);
        return { body: { items: entity === null ? [] : [viewEntity(entity)], next: null } };
      }
      const options = pageOptions(query);
      const { items, next } = await (parentId === undefined
        ? limiter.entities.list(options)
        : limiter.entities.children(parentId, options));
      const found = search === '' ? items : items.filter((entity) => matches(entity, search.toLowerCase()));
      return { body: { items: found.map(viewEntity), next } };
    },
  }),
  operation({
    id: 'getEntity',
    group: 'entities',
    method: 'get',
    path: '/v1/entities/{id}',
    role: 'admin',
    summary: 'The record of an entity.',
    params: idParam,
    answer: entityView,
    refusals: [404],
    async handle({ limiter }, { params }) {
      const entity = await limiter.entities.get(params.id);
      if (entity === null) throw new EntityNotFound(params.id);
      return { body: viewEntity(entity) };
    },
  }),
  operation({
    id: 'updateEntity',
    group: 'entities',
    method: 'patch',
    path: '/v1/entities/{id}',
    role: 'admin',
    summary: 'Changes the fields that are sent. With `version`, only if the entity still has it.',
    params: idParam,
    body: v.strictObject({
      name: v.optional(v.nullable(entityName)),
      parentId: v.optional(v.nullable(entityId)),
      cascade: v.optional(v.boolean()),
      bypass: v.optional(withBypass),
      metadata: v.optional(metadata),
      version: v.optional(v.pipe(v.number(), v.safeInteger())),
    }),
    answer: entityView,
    refusals: [404, 409],
    async handle({ limiter }, { params, body }) {
      return { body: viewEntity(await limiter.entities.update(params.id, present(body))) };
    },
  }),
  operation({
    id: 'deleteEntity',
    group: 'entities',
    method: 'delete',
    path: '/v1/entities/{id}',
    role: 'admin',
    summary: 'Removes the record of an entity that has no children.',
    params: idParam,
    answer: v.object({ deleted: v.literal(true) }),
    refusals: [404, 409],
    async handle({ limiter }, { params }) {
      await limiter.entities.delete(params.id);
      return { body: { deleted: true as const } };
    },
  }),
] as const;
