import { parseDynamoDBAddress } from '../../../backends/dynamodb/address.js';
import { systemClock } from '../../../clock.js';
import { NamespaceNotFound } from '../../../core/errors.js';
import type { Namespace } from '../../../limiter/api/namespaces-api.js';
import { formatCount, formatInstant } from '../../../visualize/format.js';
import { drawFields, drawTable } from '../../../visualize/table.js';
import {
  addExamples,
  addPaging,
  addVerb,
  type Definition,
  onStore,
  type StoreAction,
} from '../../run/define-command.js';
import { moreLine, type PagingOptions, readList } from '../../arguments/paging.js';
import type { Result } from '../../run/result.js';
import type { Session } from '../../run/session.js';
import { purgeUntilEmpty } from './purge-passes.js';
import type { Instant, ListShape } from '../../run/common-shapes.js';

/** `--json` of `namespace show|delete|recover`, items of `namespace list` and `namespace orphans` */
export interface NamespaceShape {
  readonly id: string;
  readonly name: string;
  readonly status: 'active' | 'deleted' | 'purging';
  readonly createdAt: Instant;
}

/** `--json` of `namespace create` */
export interface NamespaceCreatedShape extends NamespaceShape {
  /** false: it existed already. */
  readonly created: boolean;
}

/** `--json` of `namespace purge` */
export interface PurgedShape {
  /** The number of removed records. */
  readonly removed: number;
}

export const define: Definition = (namespace, context) => {
  addExamples(namespace, ['namespace create acme', 'entity list --namespace acme']);
  addVerb(namespace, {
    usage: 'create <name>',
    summary: 'Create a namespace; an existing one stays as it is',
    examples: ['namespace create acme'],
  }).action(onStore(context, createNamespace));
  addPaging(
    addVerb(namespace, { usage: 'list', summary: 'List the active namespaces', examples: ['namespace list'] }),
  ).action(onStore(context, listNamespaces));
  addVerb(namespace, {
    usage: 'show <name>',
    summary: 'Show a namespace',
    examples: ['namespace show acme'],
  }).action(onStore(context, showNamespace));
  addVerb(namespace, {
    usage: 'delete <name>',
    summary: 'Close a namespace to all clients; its data stays until it is purged',
    examples: ['namespace delete acme --yes'],
  }).action(onStore(context, deleteNamespace));
  addVerb(namespace, {
    usage: 'recover <name-or-id>',
    summary: 'Recover a deleted namespace with all its data (write "--" before an id that begins with "-")',
    examples: ['namespace recover acme'],
  }).action(onStore(context, recoverNamespace));
  addPaging(
    addVerb(namespace, {
      usage: 'orphans',
      summary: 'List the deleted namespaces with their ids',
      examples: ['namespace orphans'],
    }),
  ).action(onStore(context, listOrphans));
  addVerb(namespace, {
    usage: 'purge <name-or-id>',
    summary: 'Remove all data of a deleted namespace (write "--" before an id that begins with "-")',
    examples: ['namespace purge acme --yes'],
  }).action(onStore(context, purgeNamespace));
};

const createNamespace: StoreAction = async ({ limiter }, [name = '']): Promise<Result<NamespaceCreatedShape>> => {
  const before = await limiter.namespaces.get(name);
  const data = { ...shapeOf(await limiter.namespaces.register(name)), created: before === null };
  return {
    data,
    text: (style) => `${data.created ? style.green('created') : 'It exists already.'}\n${render(data)}`,
  };
};

const showNamespace: StoreAction = async ({ limiter }, [name = '']) => {
  const namespace = await limiter.namespaces.get(name);
  if (namespace === null) throw new NamespaceNotFound(name);
  const data = shapeOf(namespace);
  return { data, text: () => render(data) };
};

const listNamespaces: StoreAction<PagingOptions> = async (session, _, options) =>
  listResult(
    await readList(session, options, (page) => session.limiter.namespaces.list(page), shapeOf),
    'No active namespaces.',
  );

const listOrphans: StoreAction<PagingOptions> = async (session, _, options) =>
  listResult(
    await readList(session, options, (page) => session.limiter.namespaces.orphans(page), shapeOf),
    'No deleted namespaces.',
  );

const deleteNamespace: StoreAction = async ({ limiter, confirm }, [name = '']) => {
  if ((await limiter.namespaces.get(name)) === null) throw new NamespaceNotFound(name);
  await confirm(`closes namespace ${name} to all its clients`);
  const data = shapeOf(await limiter.namespaces.delete(name));
  return {
    data,
    text: (style) => `${style.green('deleted')}; \`headgate namespace recover ${name}\` recovers it\n${render(data)}`,
  };
};

const recoverNamespace: StoreAction = async ({ limiter }, [nameOrId = '']) => {
  const data = shapeOf(await limiter.namespaces.recover(nameOrId));
  return { data, text: (style) => `${style.green('recovered')}\n${render(data)}` };
};

/** Clients cache the state of a namespace for this long. */
const NOTICED_AFTER_MS = 60_000;

const purgeNamespace: StoreAction = async (
  { limiter, address, confirm, progress },
  [nameOrId = ''],
): Promise<Result<PurgedShape>> => {
  await confirm(`removes all data of namespace ${nameOrId} permanently`);
  progress(`purging ${nameOrId} ...`, 0);
  // The name finds the namespace only until the first pass: from then on its status is `purging`.
  const id = await orphanOf(limiter, nameOrId);
  const removed = await purgeUntilEmpty({
    pass: async () => (await limiter.namespaces.purge(id)).removed,
    noticedAfterMs: parseDynamoDBAddress(address) === null ? 0 : NOTICED_AFTER_MS,
    clock: systemClock,
    onProgress: (soFar, isWaiting) => {
      const next = isWaiting ? '; checks again in a minute, because clients may still write' : '';
      progress(`purging ${nameOrId} ... ${formatCount(soFar)} records removed${next}`, 0);
    },
  });
  return { data: { removed }, text: (style) => `${style.green('purged')}: ${formatCount(removed)} records` };
};

/** The id of the deleted namespace; unless there is exactly one, the input itself, which the purge then refuses. */
async function orphanOf({ namespaces }: Session['limiter'], nameOrId: string): Promise<string> {
  const ids: string[] = [];
  for await (const { id, name, status } of namespaces.orphans({ limit: 1_000 })) {
    if (id === nameOrId) return id;
    if (name === nameOrId && status === 'deleted') ids.push(id);
  }
  return ids.length === 1 && ids[0] !== undefined ? ids[0] : nameOrId;
}

function shapeOf({ id, name, status, createdAt }: Namespace): NamespaceShape {
  return { id, name, status, createdAt: createdAt.toISOString() };
}

function render({ id, name, status, createdAt }: NamespaceShape): string {
  return drawFields([
    ['namespace', name],
    ['id', id],
    ['status', status],
    ['created', formatInstant(new Date(createdAt))],
  ]);
}

function listResult(data: ListShape<NamespaceShape>, none: string): Result<ListShape<NamespaceShape>> {
  const rows = data.items.map(({ name, id, status, createdAt }) => [
    name,
    id,
    status,
    formatInstant(new Date(createdAt)),
  ]);
  return {
    data,
    text: (style) =>
      rows.length === 0
        ? none
        : drawTable(['NAMESPACE', 'ID', 'STATUS', 'CREATED'], rows, style.width) + moreLine(data, style),
  };
}
