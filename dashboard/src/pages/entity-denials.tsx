import { useEffect } from 'preact/hooks';
import type { Denial } from '../model/activity.js';
import { formatClock, formatDuration } from '../model/format.js';
import { activity, drawing } from '../state/live.js';
import { Panel } from '../ui/panel.js';
import { Empty } from '../ui/states.js';
import { type Column, Table } from '../ui/table.js';

const COLUMNS: readonly Column<Denial>[] = [
  { title: 'At', cell: ({ atMs }) => <span class="number">{formatClock(atMs)}</span> },
  { title: 'Resource', cell: ({ decision }) => decision.resource },
  { title: 'Asked', cell: ({ decision }) => <code>{askedText(decision.consume)}</code> },
  { title: 'Refused by', cell: ({ decision }) => refusedBy(decision) },
  {
    title: 'Fits in',
    cell: ({ decision: { retryAfterMs } }) => (retryAfterMs === null ? 'never' : formatDuration(retryAfterMs)),
    isNumber: true,
  },
];

function askedText(consume: Readonly<Record<string, number>>): string {
  return Object.entries(consume)
    .map(([name, amount]) => `${name}=${amount}`)
    .join(' ');
}

function refusedBy({ entityId, violations, paused, reason }: Denial['decision']) {
  if (paused !== null) return `pause of ${paused.entityId}: ${paused.reason}`;
  if (violations.length === 0) return reason;
  return violations
    .map(({ limit, entityId: level }) => (level === entityId ? limit : `${limit} of ${level}`))
    .join(', ');
}

/** The last denials of an entity that this server has made since the page was opened. */
export function EntityDenials({ id }: { readonly id: string }) {
  useEffect(() => activity.watch(id), [id]);
  void drawing.value;
  const rows = activity.denialsOf(id).slice(0, 6);
  return (
    <Panel title="Recent denials" scope="server">
      {rows.length === 0 ? (
        <Empty>None since this page was opened.</Empty>
      ) : (
        <Table
          caption={`Denials of ${id}`}
          columns={COLUMNS}
          rows={rows}
          keyOf={(row) => `${row.atMs} ${rows.indexOf(row)}`}
        />
      )}
    </Panel>
  );
}
