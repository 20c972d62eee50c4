import type { Command } from 'commander';
import { EntityNotFound, HeadgateError } from '../../../core/errors.js';
import { checkResource } from '../../../core/identifiers.js';
import type { EntityUpdate } from '../../../limiter/api/entities-api.js';
import {
  addExamples,
  addPaging,
  addVerb,
  appendValue,
  type Definition,
  onStore,
  type StoreAction,
} from '../../run/define-command.js';
import { entityShape, limitTexts, renderEntities, renderEntity, renderEntityView, viewEntity } from './entity-view.js';
import { type PagingOptions, readList } from '../../arguments/paging.js';
import { parseLimits, parseMetadata, parseWhole } from '../../arguments/parse.js';
import type { Result } from '../../run/result.js';
import type { Session } from '../../run/session.js';
import { checkReplace, prepareLimits, REPLACE_OPTION } from '../../limits/set-limits.js';
import type { EntityShape } from './entity-shapes.js';
import type { DeletedShape, ListShape } from '../../run/common-shapes.js';

export const define: Definition = (entity, context) => {
  addExamples(entity, ['entity set user-1 -l rpm:60/min', 'entity create user-1 --parent proj-1 --cascade']);
  addRecordOptions(
    addVerb(entity, {
      usage: 'create <entity>',
      summary: 'Create the record of an entity; only a parent or metadata needs a record',
      examples: ['entity create proj-1 --name Production', 'entity create user-1 --parent proj-1 --cascade'],
    }),
  ).action(onStore(context, createEntity));
  addVerb(entity, {
    usage: 'show <entity>',
    summary: 'Show an entity and its own limits',
    examples: ['entity show user-1', 'entity show user-1 --resource gpt-4 --json'],
  })
    .option('--resource <resource>', 'also its limits on this resource; can be repeated', appendValue)
    .option('--all-resources', 'also its limits on every resource (reads all limits of the namespace)')
    .action(onStore(context, showEntity));
  addRecordOptions(
    addVerb(entity, {
      usage: 'set <entity>',
      summary: 'Change the record of an entity, or its own limits; what is not named stays',
      examples: [
        'entity set user-1 -l rpm:60/min -l tpm:10000/min',
        'entity set user-1 --resource gpt-4 -l rpm:600/min -l slots:20/concurrent',
        'entity set user-1 --parent proj-1 --cascade',
        `entity set user-1 --no-name --metadata '{"tier":"gold"}'`,
      ],
    }),
  )
    .option('--no-name', 'remove the name')
    .option('--no-parent', 'remove the parent')
    .option('--no-cascade', 'count what it spends for itself only')
    .option('--no-bypass', 'its own limits refuse as configured')
    .option('-l, --limits <limit>', 'a limit of its own, such as rpm:60/min; can be repeated', appendValue)
    .option(...REPLACE_OPTION)
    .option('--resource <resource>', 'the resource of the limits; without it they apply to every resource')
    .option('--if-version <version>', 'change the record only if it still has this version')
    .action(onStore(context, setEntity));
  addVerb(entity, {
    usage: 'delete <entity>',
    summary: 'Delete the record of an entity, or only its own limits',
    examples: [
      'entity delete user-1 --yes',
      'entity delete user-1 --default-limits --yes',
      'entity delete user-1 --resource gpt-4 --yes',
    ],
  })
    .option('--default-limits', 'only its limits for every resource; the record stays')
    .option('--resource <resource>', 'only its limits on this resource; the record stays')
    .action(onStore(context, deleteEntity));
  addPaging(
    addVerb(entity, {
      usage: 'list',
      summary: 'List the entities that have a record',
      examples: ['entity list', 'entity list --all --json'],
    }),
  ).action(onStore(context, listEntities));
  addPaging(
    addVerb(entity, {
      usage: 'children <entity>',
      summary: 'List the children of an entity',
      examples: ['entity children proj-1'],
    }),
  ).action(onStore(context, listChildren));
};

function addRecordOptions(command: Command): Command {
  return command
    .option('--name <name>', 'a name for people')
    .option('--parent <entity>', 'the parent, which must exist')
    .option('--cascade', 'count what it spends for its parent, too')
    .option('--bypass', 'its own limits refuse nothing, and report what they would refuse')
    .option('--metadata <json>', 'a JSON object, stored as it is');
}

interface RecordOptions {
  readonly name?: string | false;
  readonly parent?: string | false;
  readonly cascade?: boolean;
  readonly bypass?: boolean;
  readonly metadata?: string;
}

const createEntity: StoreAction<RecordOptions> = async ({ limiter }, [id = ''], options) => {
  const { name, parentId, cascade, bypass, metadata } = readRecord(options);
  const entity = await limiter.entities.create({
    id,
    ...(typeof name === 'string' ? { name } : {}),
    ...(typeof parentId === 'string' ? { parentId } : {}),
    ...(cascade === undefined ? {} : { cascade }),
    ...(bypass === undefined ? {} : { bypass }),
    ...(metadata === undefined ? {} : { metadata }),
  });
  const data = entityShape(entity);
  return { data, text: (style) => `${style.green('created')}\n${renderEntity(data)}` };
};

/** Commander sets an option to `false` for its `--no-` form. */
function readRecord({ name, parent, cascade, bypass, metadata }: RecordOptions): EntityUpdate {
  return {
    ...(name === undefined ? {} : { name: name === false ? null : name }),
    ...(parent === undefined ? {} : { parentId: parent === false ? null : parent }),
    ...(cascade === undefined ? {} : { cascade }),
    ...(bypass === undefined ? {} : { bypass }),
    ...(metadata === undefined ? {} : { metadata: parseMetadata(metadata) }),
  };
}

interface ShowOptions {
  readonly resource?: readonly string[];
  readonly allResources?: boolean;
}

const showEntity: StoreAction<ShowOptions> = async (session, [id = ''], options) => {
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

interface SetOptions extends RecordOptions {
  readonly limits?: readonly string[];
  readonly replace?: boolean;
  readonly resource?: string;
  readonly ifVersion?: string;
}

const setEntity: StoreAction<SetOptions> = async (session, [id = ''], options) => {
  const { limiter } = session;
  // All input is checked before the first write.
  const record = readRecord(options);
  const limits = parseLimits(options.limits);
  checkReplace(limits, options.replace);
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
      'Nothing to set: name a limit with -l, or --name, --parent, --cascade, --bypass or --metadata',
    );
  }
  if (!changesRecord && options.ifVersion !== undefined) {
    throw new HeadgateError('input.invalid', '--if-version compares the version of the record: limits have none');
  }
  const level = resource === undefined ? { entityId: id } : { entityId: id, resource };
  const writeLimits =
    limits === undefined ? null : await prepareLimits(session, level, { limits, replace: options.replace === true });
  if (changesRecord) await limiter.entities.update(id, { ...record, ...version });
  const note = writeLimits === null ? () => '' : await writeLimits();
  const data = await viewEntity(limiter, id, resource === undefined ? [] : [resource]);
  return { data, text: (style) => `${style.green('set')}\n${renderEntityView(data, style)}${note(style)}` };
};

interface DeleteOptions {
  readonly defaultLimits?: boolean;
  readonly resource?: string;
}

const deleteEntity: StoreAction<DeleteOptions> = async (
  { limiter, confirm },
  [id = ''],
  { defaultLimits, resource },
): Promise<Result<DeletedShape>> => {
  if (defaultLimits === true && resource !== undefined) {
    throw new HeadgateError('input.invalid', 'Give --default-limits or --resource, not both');
  }
  if (defaultLimits === true || resource !== undefined) {
    const level = resource === undefined ? { entityId: id } : { entityId: id, resource };
    const limits = limitTexts((await limiter.config.get(level))?.limits);
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

const listEntities: StoreAction<PagingOptions> = async (session, _, options) =>
  listResult(
    await readList(session, options, (page) => session.limiter.entities.list(page), entityShape),
    'No entities.',
  );

const listChildren: StoreAction<PagingOptions> = async (session, [id = ''], options) => {
  const list = (page: object) => session.limiter.entities.children(id, page);
  return listResult(await readList(session, options, list, entityShape), `${id} has no children.`);
};

function listResult(data: ListShape<EntityShape>, none: string): Result<ListShape<EntityShape>> {
  return { data, text: (style) => renderEntities(data, none, style) };
}
