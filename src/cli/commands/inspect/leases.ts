import type { LeaseView } from '../../../limiter/api/leases-api.js';
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
import type { Style } from '../../terminal/terminal.js';
import type { Counts, Instant, ListShape } from '../../run/common-shapes.js';

/** `--json`: items of `leases list` */
export interface LeaseShape {
  readonly id: string;
  readonly amounts: Counts;
  readonly caller: string | null;
  readonly acquiredAt: Instant | null;
  readonly expiresAt: Instant;
  /** true: the lease has expired and is not reclaimed yet. */
  readonly expired: boolean;
}

export const define: Definition = (leases, context) => {
  addExamples(leases, ['leases list user-1 gpt-4']);
  addPaging(
    addVerb(leases, {
      usage: 'list <entity> <resource>',
      summary: 'List the leases that hold slots in a bucket',
      examples: ['leases list user-1 gpt-4'],
    }),
  ).action(onStore(context, listLeases));
};

const listLeases: StoreAction<PagingOptions> = async (session, [entityId = '', resource = ''], options) => {
  const list = (page: object) => session.limiter.leases.list({ entityId, resource, ...page });
  const now = new Date();
  const data = await readList(session, options, list, (lease) => shapeOf(lease, now));
  return {
    data,
    text: (style) =>
      data.items.length === 0 ? `No leases hold slots of ${entityId} on ${resource}.` : render(data, now, style),
  };
};

function shapeOf({ id, amounts, caller, acquiredAt, expiresAt }: LeaseView, now: Date): LeaseShape {
  return {
    id,
    amounts,
    caller: caller ?? null,
    acquiredAt: acquiredAt?.toISOString() ?? null,
    expiresAt: expiresAt.toISOString(),
    expired: expiresAt <= now,
  };
}

function render(list: ListShape<LeaseShape>, now: Date, style: Style): string {
  const rows = list.items.map(({ id, amounts, caller, acquiredAt, expiresAt, expired }) => [
    id,
    Object.entries(amounts)
      .map(([name, amount]) => `${name}=${amount}`)
      .join(' ') || '-',
    caller ?? '-',
    acquiredAt === null ? '-' : formatInstant(new Date(acquiredAt)),
    expired
      ? { value: 'expired, not reclaimed yet', paint: style.yellow }
      : `in ${formatDuration(new Date(expiresAt).getTime() - now.getTime())}`,
  ]);
  return drawTable(['LEASE', 'HOLDS', 'CALLER', 'SINCE', 'EXPIRES'], rows, style.width) + moreLine(list, style);
}
