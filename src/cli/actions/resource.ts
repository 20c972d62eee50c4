import { drawFields, drawTable } from '../../visualize/table.js';
import type { StoreAction } from '../define-command.js';
import { moreLine, type PagingOptions, readList } from '../paging.js';
import { parseLimits } from '../parse.js';
import { showLimits } from '../render/limits.js';
import type { DeletedShape, ListShape, ResourceShape } from '../shapes.js';
import type { Result } from '../result.js';
import type { Session } from '../session.js';
import { setLimits } from '../set-limits.js';
import type { Style } from '../terminal.js';

export const showResource: StoreAction = async (session, [resource = '']) => {
  const data = await readResource(session, resource);
  return { data, text: (style) => render(data, style) };
};

interface SetOptions {
  readonly limits: readonly string[];
  readonly replace?: boolean;
}

export const setResource: StoreAction<SetOptions> = async (session, [resource = ''], options) => {
  const limits = parseLimits(options.limits) ?? [];
  const note = await setLimits(session, { resource }, { limits, replace: options.replace === true });
  const data = await readResource(session, resource);
  return { data, text: (style) => `${style.green('set')}\n${render(data, style)}${note(style)}` };
};

export const deleteResource: StoreAction = async (session, [resource = '']): Promise<Result<DeletedShape>> => {
  const { limits } = await readResource(session, resource);
  if (limits.length === 0) {
    return { data: { deleted: false }, text: () => `Resource ${resource} has no limits.` };
  }
  await session.confirm(`deletes the limits of resource ${resource} (${limits.join(', ')})`);
  await session.limiter.config.delete({ resource });
  return { data: { deleted: true }, text: (style) => `${style.green('deleted')}: the limits of resource ${resource}` };
};

export const listResources: StoreAction = async ({ limiter, progress }): Promise<Result<ListShape<ResourceShape>>> => {
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

export const listResourceEntities: StoreAction<PagingOptions> = async (session, [resource = ''], options) => {
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
