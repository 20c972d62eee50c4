import type { LeaseQuery, LeaseView } from '../../../limiter/api/leases-api.js';
import { formatDuration, formatInstant } from '../../../visualize/format.js';
import { drawTable } from '../../../visualize/table.js';
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
import type { Style } from '../../terminal/terminal.js';
import type { Counts, Instant, ListShape } from '../../run/common-shapes.js';

/** `--json`: items of `leases list` */
export interface LeaseShape {
  readonly id: string;
  readonly entityId: string;
  readonly resource: string;
  readonly amounts: Counts;
  readonly caller: string | null;
  readonly acquiredAt: Instant | null;
  readonly expiresAt: Instant;
  /** true: the lease has expired and is not reclaimed yet. */
  readonly expired: boolean;
  /** true: the lease has a token, and another process may continue it. */
  readonly portable: boolean;
}

/** `--json` of `leases release` */
export interface LeaseReleaseShape {
  /** false: none of the buckets has the lease. */
  readonly released: boolean;
}

export const define: Definition = (leases, context) => {
  addExamples(leases, ['leases list user-1 gpt-4']);
  addPaging(
    addVerb(leases, {
      usage: 'list [entity] [resource]',
      summary: 'List the leases that have a holder: of a bucket, of an entity, or of the namespace',
      examples: ['leases list user-1 gpt-4', 'leases list --entity user-1', 'leases list --all'],
    }),
  )
    .option('--entity <entity>', 'only the leases of this entity')
    .option('--resource <resource>', 'only the leases of this resource of the entity')
    .action(onStore(context, listLeases));
  addVerb(leases, {
    usage: 'release <id>',
    summary: 'End a lease whose process is gone, as its expiry would',
    examples: ['leases release 0QCON500Tlq --yes', 'leases release 0QCON500Tlq --entity user-1 --resource gpt-4 --yes'],
  })
    .option('--entity <entity>', 'look only at the buckets of this entity')
    .option('--resource <resource>', 'look only at the bucket of this resource of the entity')
    .action(onStore(context, releaseLease));
};

interface Where {
  readonly entity?: string;
  readonly resource?: string;
}

function queryOf(entity: string | undefined, resource: string | undefined): LeaseQuery {
  return { ...(entity === undefined ? {} : { entityId: entity }), ...(resource === undefined ? {} : { resource }) };
}

function describe({ entityId, resource }: LeaseQuery): string {
  if (entityId === undefined) return ' in this namespace';
  return resource === undefined ? ` of ${entityId}` : ` of ${entityId} on ${resource}`;
}

const listLeases: StoreAction<PagingOptions & Where> = async (session, [first, second], options) => {
  const { entity = first, resource = second, ...paging } = options;
  const query = queryOf(entity, resource);
  const list = (page: object) => session.limiter.leases.list({ ...query, ...page });
  const now = new Date();
  const data = await readList(session, paging, list, (lease) => shapeOf(lease, now));
  return {
    data,
    text: (style) => (data.items.length === 0 ? `No leases${describe(query)}.` : render(data, now, style)),
  };
};

const releaseLease: StoreAction<Where> = async (
  { limiter, confirm },
  [id = ''],
  { entity, resource },
): Promise<Result<LeaseReleaseShape>> => {
  const query = queryOf(entity, resource);
  await confirm(`ends lease ${id}${describe(query)}, and gives its slots back`);
  const released = await limiter.leases.release(id, query);
  return {
    data: { released },
    text: (style) => (released ? `${style.green('released')}: ${id}` : `No lease ${id}${describe(query)}.`),
  };
};

function shapeOf(lease: LeaseView, now: Date): LeaseShape {
  const { id, entityId, resource, amounts, caller, acquiredAt, expiresAt, portable } = lease;
  return {
    id,
    entityId,
    resource,
    amounts,
    caller: caller ?? null,
    acquiredAt: acquiredAt?.toISOString() ?? null,
    expiresAt: expiresAt.toISOString(),
    expired: expiresAt <= now,
    portable: portable === true,
  };
}

function render(list: ListShape<LeaseShape>, now: Date, style: Style): string {
  const rows = list.items.map(({ id, entityId, resource, amounts, caller, acquiredAt, expiresAt, expired }) => [
    id,
    entityId,
    resource,
    Object.entries(amounts)
      .map(([name, amount]) => `${name}=${amount}`)
      .join(' ') || '-',
    caller ?? '-',
    acquiredAt === null ? '-' : formatInstant(new Date(acquiredAt)),
    expired
      ? { value: 'expired, not reclaimed yet', paint: style.yellow }
      : `in ${formatDuration(new Date(expiresAt).getTime() - now.getTime())}`,
  ]);
  return (
    drawTable(['LEASE', 'ENTITY', 'RESOURCE', 'HOLDS', 'CALLER', 'SINCE', 'EXPIRES'], rows, style.width) +
    moreLine(list, style)
  );
}
