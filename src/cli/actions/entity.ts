import { EntityNotFound, HeadgateError } from '../../core/errors.js';
import { checkResource } from '../../core/identifiers.js';
import type { Limit } from '../../core/limit.js';
import type { Entity, EntityUpdate } from '../../limiter/api/entities-api.js';
import type { RateLimiter } from '../../limiter/rate-limiter.js';
import type { StoreAction } from '../define-command.js';
import { type PagingOptions, readList } from '../paging.js';
import { parseLimits, parseMetadata, parseWhole } from '../parse.js';
import { renderEntities, renderEntity, renderEntityView } from '../render/entity.js';
import type { Result } from '../result.js';
import type { Session } from '../session.js';
import { setLimits } from '../set-limits.js';
import type { DeletedShape, EntityShape, EntityViewShape, ListShape } from '../shapes.js';

interface RecordOptions {
  readonly name?: string | false;
  readonly parent?: string | false;
  readonly cascade?: boolean;
  readonly metadata?: string;
}

export const createEntity: StoreAction<RecordOptions> = async ({ limiter }, [id = ''], options) => {
  const { name, parentId, cascade, metadata } = readRecord(options);
  const entity = await limiter.entities.create({
    id,
    ...(typeof name === 'string' ? { name } : {}),
    ...(typeof parentId === 'string' ? { parentId } : {}),
    ...(cascade === undefined ? {} : { cascade }),
    ...(metadata === undefined ? {} : { metadata }),
  });
  const data = shapeOf(entity);
  return { data, text: (style) => `${style.green('created')}\n${renderEntity(data)}` };
};

/** `false` is what `--no-name` gives. */
function readRecord({ name, parent, cascade, metadata }: RecordOptions): EntityUpdate {
  return {
    ...(name === undefined ? {} : { name: name === false ? null : name }),
    ...(parent === undefined ? {} : { parentId: parent === false ? null : parent }),
    ...(cascade === undefined ? {} : { cascade }),
    ...(metadata === undefined ? {} : { metadata: parseMetadata(metadata) }),
  };
}

interface ShowOptions {
  readonly resource?: readonly string[];
  readonly allResources?: boolean;
}

export const showEntity: StoreAction<ShowOptions> = async (session, [id = ''], options) => {
  const named = options.resource ?? [];
  const found = options.allResources === true ? await readResourcesOf(session, id) : [];
  const data = await viewEntity(session.limiter, id, [...new Set([...named, ...found])]);
  if (
    data.entity === null &&
    data.defaultLimits.length === 0 &&
    data.resources.every(({ limits }) => limits.length === 0)
  )
    throw new EntityNotFound(id);
  return { data, text: (style) => renderEntityView(data, style) };
};

async function readResourcesOf({ limiter, progress }: Session, id: string): Promise<readonly string[]> {
  const resources: string[] = [];
  for await (const { level } of limiter.config.all({ limit: 1_000 })) {
    progress('looking through all limits');
    if (level === 'system' || !('entityId' in level) || level.entityId !== id) continue;
    if (level.resource !== undefined) resources.push(level.resource);
  }
  return resources.toSorted();
}

async function viewEntity(limiter: RateLimiter, id: string, resources: readonly string[]): Promise<EntityViewShape> {
  const entity = await limiter.entities.get(id);
  const limitsOf = async (resource?: string): Promise<readonly string[]> => {
    const config = await limiter.config.get(resource === undefined ? { entityId: id } : { entityId: id, resource });
    return textsOf(config?.limits);
  };
  const onResources = resources.map(async (resource) => ({ resource, limits: await limitsOf(resource) }));
  return {
    id,
    entity: entity === null ? null : shapeOf(entity),
    defaultLimits: await limitsOf(),
    resources: await Promise.all(onResources),
  };
}

interface SetOptions extends RecordOptions {
  readonly limits?: readonly string[];
  readonly replace?: boolean;
  readonly resource?: string;
  readonly ifVersion?: string;
}

export const setEntity: StoreAction<SetOptions> = async (session, [id = ''], options) => {
  const { limiter } = session;
  // All of it is read before anything is written.
  const record = readRecord(options);
  const limits = parseLimits(options.limits);
  const version = options.ifVersion === undefined ? {} : { version: parseWhole('--if-version', options.ifVersion) };
  const { resource } = options;
  if (resource !== undefined) checkResource(resource);
  const changesRecord = Object.keys(record).length > 0;
  if (resource !== undefined && limits === undefined) {
    throw new HeadgateError('input.invalid', `--resource ${resource} needs the limits to set there: -l rpm:60/min`);
  }
  if (!changesRecord && limits === undefined) {
    throw new HeadgateError(
      'input.invalid',
      'Nothing to set: name a limit with -l, or --name, --parent, --cascade or --metadata',
    );
  }
  if (!changesRecord && options.ifVersion !== undefined) {
    throw new HeadgateError('input.invalid', '--if-version is of the record: limits have no version to compare');
  }
  if (changesRecord) await limiter.entities.update(id, { ...record, ...version });
  const level = resource === undefined ? { entityId: id } : { entityId: id, resource };
  const wanted = { limits: limits ?? [], replace: options.replace === true };
  const note = limits === undefined ? () => '' : await setLimits(session, level, wanted);
  const data = await viewEntity(limiter, id, resource === undefined ? [] : [resource]);
  return { data, text: (style) => `${style.green('set')}\n${renderEntityView(data, style)}${note(style)}` };
};

interface DeleteOptions {
  readonly defaultLimits?: boolean;
  readonly resource?: string;
}

export const deleteEntity: StoreAction<DeleteOptions> = async (
  { limiter, confirm },
  [id = ''],
  { defaultLimits, resource },
): Promise<Result<DeletedShape>> => {
  if (defaultLimits === true && resource !== undefined) {
    throw new HeadgateError('input.invalid', 'Give --default-limits or --resource, not both');
  }
  if (defaultLimits === true || resource !== undefined) {
    const level = resource === undefined ? { entityId: id } : { entityId: id, resource };
    const limits = textsOf((await limiter.config.get(level))?.limits);
    const where = resource === undefined ? `of ${id} for every resource` : `of ${id} on ${resource}`;
    if (limits.length === 0) return { data: { deleted: false }, text: () => `There are no limits ${where}.` };
    await confirm(`deletes the limits ${where} (${limits.join(', ')})`);
    await limiter.config.delete(level);
    return { data: { deleted: true }, text: (style) => `${style.green('deleted')}: the limits ${where}` };
  }
  if ((await limiter.entities.get(id)) === null) throw new EntityNotFound(id);
  await confirm(`deletes the record of entity ${id}`);
  await limiter.entities.delete(id);
  return {
    data: { deleted: true },
    text: (style) => `${style.green('deleted')}: the record of ${id} (its limits, buckets and usage stay)`,
  };
};

export const listEntities: StoreAction<PagingOptions> = async (session, _, options) =>
  listResult(await readList(session, options, (page) => session.limiter.entities.list(page), shapeOf), 'No entities.');

export const listChildren: StoreAction<PagingOptions> = async (session, [id = ''], options) => {
  const list = (page: object) => session.limiter.entities.children(id, page);
  return listResult(await readList(session, options, list, shapeOf), `${id} has no children.`);
};

function listResult(data: ListShape<EntityShape>, none: string): Result<ListShape<EntityShape>> {
  return { data, text: (style) => renderEntities(data, none, style) };
}

function shapeOf({ id, name, parentId, cascade, metadata, createdAt, version }: Entity): EntityShape {
  return { id, name, parentId, cascade, metadata, createdAt: createdAt.toISOString(), version };
}

function textsOf(limits: readonly Limit[] = []): readonly string[] {
  return limits.map(String);
}
