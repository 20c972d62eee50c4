import type { Limit } from '../../../core/limit.js';
import type { Entity } from '../../../limiter/api/entities-api.js';
import type { RateLimiter } from '../../../limiter/rate-limiter.js';
import { formatInstant } from '../../../visualize/format.js';
import { drawFields, drawTable } from '../../../visualize/table.js';
import { showLimits } from '../../limits/describe-limits.js';
import { pausedField, pauseShape } from './pause-view.js';
import { moreLine } from '../../arguments/paging.js';
import type { Style } from '../../terminal/terminal.js';
import type { EntityShape, EntityViewShape } from './entity-shapes.js';
import type { ListShape } from '../../run/common-shapes.js';

/** The record of an entity, its default limits, and its limits on these resources. */
export async function viewEntity(
  limiter: RateLimiter,
  id: string,
  resources: readonly string[],
): Promise<EntityViewShape> {
  const entity = await limiter.entities.get(id);
  const limitsOf = async (resource?: string): Promise<readonly string[]> => {
    const config = await limiter.config.get(resource === undefined ? { entityId: id } : { entityId: id, resource });
    return limitTexts(config?.limits);
  };
  const onResources = resources.map(async (resource) => ({ resource, limits: await limitsOf(resource) }));
  return {
    id,
    entity: entity === null ? null : entityShape(entity),
    defaultLimits: await limitsOf(),
    resources: await Promise.all(onResources),
  };
}

export function entityShape({ createdAt, paused, ...entity }: Entity): EntityShape {
  const { id, name, parentId, cascade, bypass, metadata, version } = entity;
  const shown = { paused: pauseShape(paused, new Date()) };
  const bypassing = bypass === undefined ? {} : { bypass };
  return {
    id,
    name,
    parentId,
    cascade,
    ...bypassing,
    metadata,
    createdAt: createdAt.toISOString(),
    version,
    ...shown,
  };
}

export function limitTexts(limits: readonly Limit[] = []): readonly string[] {
  return limits.map(String);
}

export function renderEntity(entity: EntityShape): string {
  return drawFields(fieldsOf(entity));
}

function fieldsOf(entity: EntityShape): [string, string][] {
  const { id, name, parentId, cascade, bypass, metadata, createdAt, version, paused } = entity;
  const bypassing: [string, string][] = bypass === true ? [['bypass', 'its own limits refuse nothing']] : [];
  return [
    ['entity', id],
    ['name', name ?? '-'],
    ['parent', parentId === null ? '-' : parentId + (cascade ? ' (spends from it, too)' : ' (does not spend from it)')],
    ...bypassing,
    ['metadata', Object.keys(metadata).length === 0 ? '-' : JSON.stringify(metadata)],
    ['created', `${formatInstant(new Date(createdAt))}, version ${version}`],
    ...pausedField(paused),
  ];
}

export function renderEntityView({ id, entity, defaultLimits, resources }: EntityViewShape, style: Style): string {
  const record: [string, string][] =
    entity === null ? [['entity', `${id} (no record: it has limits only)`]] : fieldsOf(entity);
  return drawFields([
    ...record,
    ['limits', showLimits(defaultLimits, style, 'none of its own')],
    ...resources.map(
      ({ resource, limits }) => [`on ${resource}`, showLimits(limits, style, 'none of its own')] as const,
    ),
  ]);
}

export function renderEntities(list: ListShape<EntityShape>, none: string, style: Style): string {
  if (list.items.length === 0) return none;
  const rows = list.items.map(({ id, name, parentId, cascade, createdAt }) => [
    id,
    name ?? '-',
    parentId ?? '-',
    parentId === null ? '-' : cascade ? 'yes' : 'no',
    formatInstant(new Date(createdAt)),
  ]);
  return drawTable(['ENTITY', 'NAME', 'PARENT', 'CASCADE', 'CREATED'], rows, style.width) + moreLine(list, style);
}
