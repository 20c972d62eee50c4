import { drawFields, drawTable } from '../../../visualize/table.js';
import {
  addExamples,
  addPaging,
  addVerb,
  appendValue,
  type Definition,
  onStore,
  type StoreAction,
} from '../../run/define-command.js';
import { showLimits } from '../../limits/describe-limits.js';
import { moreLine, type PagingOptions, readList } from '../../arguments/paging.js';
import { parseLimits } from '../../arguments/parse.js';
import type { Result } from '../../run/result.js';
import type { Session } from '../../run/session.js';
import { REPLACE_OPTION, setLimits } from '../../limits/set-limits.js';
import type { Style } from '../../terminal/terminal.js';
import type { DeletedShape, LimitText, ListShape } from '../../run/common-shapes.js';

/** `--json` of `resource show`, `resource set`, items of `resource list` */
export interface ResourceShape {
  readonly resource: string;
  readonly limits: readonly LimitText[];
}

export const define: Definition = (resource, context) => {
  addExamples(resource, ['resource set gpt-4 -l tpm:10000/min:50000']);
  addVerb(resource, {
    usage: 'show <resource>',
    summary: 'Show the limits of a resource',
    examples: ['resource show gpt-4'],
  }).action(onStore(context, showResource));
  addVerb(resource, {
    usage: 'set <resource>',
    summary: 'Set limits of a resource; limits that are not named stay',
    examples: ['resource set gpt-4 -l tpm:10000/min:50000 -l slots:20/concurrent'],
  })
    .requiredOption('-l, --limits <limit>', 'a limit such as rpm:60/min; can be repeated', appendValue)
    .option(...REPLACE_OPTION)
    .action(onStore(context, setResource));
  addVerb(resource, {
    usage: 'delete <resource>',
    summary: 'Delete the limits of a resource',
    examples: ['resource delete gpt-4 --yes'],
  }).action(onStore(context, deleteResource));
  addVerb(resource, {
    usage: 'list',
    summary: 'List the resources that have limits (reads all limits of the namespace)',
    examples: ['resource list'],
  }).action(onStore(context, listResources));
  addPaging(
    addVerb(resource, {
      usage: 'entities <resource>',
      summary: 'List the entities that have limits of their own on a resource',
      examples: ['resource entities gpt-4'],
    }),
  ).action(onStore(context, listResourceEntities));
};

const showResource: StoreAction = async (session, [resource = '']) => {
  const data = await readResource(session, resource);
  return { data, text: (style) => render(data, style) };
};

interface SetOptions {
  readonly limits: readonly string[];
  readonly replace?: boolean;
}

const setResource: StoreAction<SetOptions> = async (session, [resource = ''], options) => {
  const limits = parseLimits(options.limits) ?? [];
  const note = await setLimits(session, { resource }, { limits, replace: options.replace === true });
  const data = await readResource(session, resource);
  return { data, text: (style) => `${style.green('set')}\n${render(data, style)}${note(style)}` };
};

const deleteResource: StoreAction = async (session, [resource = '']): Promise<Result<DeletedShape>> => {
  const { limits } = await readResource(session, resource);
  if (limits.length === 0) {
    return { data: { deleted: false }, text: () => `Resource ${resource} has no limits.` };
  }
  await session.confirm(`deletes the limits of resource ${resource} (${limits.join(', ')})`);
  await session.limiter.config.delete({ resource });
  return { data: { deleted: true }, text: (style) => `${style.green('deleted')}: the limits of resource ${resource}` };
};

const listResources: StoreAction = async ({ limiter, progress }): Promise<Result<ListShape<ResourceShape>>> => {
  const items: ResourceShape[] = [];
  for await (const { level, limits } of limiter.config.all({ limit: 1_000 })) {
    progress('looking through all limits');
    if (level === 'system' || 'entityId' in level || limits.length === 0) continue;
    items.push({ resource: level.resource, limits: limits.map(String) });
  }
  items.sort((a, b) => (a.resource < b.resource ? -1 : 1));
  const rows = items.map(({ resource, limits }) => [resource, limits.join('  ')]);
  return {
    data: { items, next: null },
    text: ({ width }) =>
      rows.length === 0 ? 'No resource has limits.' : drawTable(['RESOURCE', 'LIMITS'], rows, width),
  };
};

const listResourceEntities: StoreAction<PagingOptions> = async (session, [resource = ''], options) => {
  const list = (page: object) => session.limiter.config.list({ resource, ...page });
  const data = await readList(session, options, list, String);
  return {
    data,
    text: (style) =>
      data.items.length === 0
        ? `No entity has limits of its own on ${resource}.`
        : data.items.join('\n') + moreLine(data, style),
  };
};

async function readResource({ limiter }: Session, resource: string): Promise<ResourceShape> {
  const config = await limiter.config.get({ resource });
  return { resource, limits: (config?.limits ?? []).map(String) };
}

function render({ resource, limits }: ResourceShape, style: Style): string {
  return drawFields([
    ['resource', resource],
    ['limits', showLimits(limits, style, 'none')],
  ]);
}
