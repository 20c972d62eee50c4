import type { Denial } from '../model/denials.js';
import { formatClock, formatDuration } from '../model/format.js';
import { activity, drawing } from '../state/live.js';
import { Panel } from '../ui/panel.js';
import { EntityLink } from '../ui/link.js';
import { NoEvents } from '../ui/states.js';
import { type Column, Table } from '../ui/table.js';

const COLUMNS: readonly Column<Denial>[] = [
  ['At', ({ atMs }) => <span class="number">{formatClock(atMs)}</span>],
  ['Caller', ({ decision: { entityId, resource } }) => <EntityLink id={entityId} resource={resource} />],
  ['Resource', ({ decision }) => decision.resource],
  ['Asked', ({ decision }) => <code>{askedText(decision.consume)}</code>],
  ['Refused by', ({ decision }) => refusedBy(decision)],
  [
    'Fits in',
    ({ decision: { retryAfterMs } }) => (retryAfterMs === null ? 'never' : formatDuration(retryAfterMs)),
    'number',
  ],
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

/** The last denials that this server has made: of the entity, or by its limits or its pause. */
export function EntityDenials({ id }: { readonly id: string }) {
  void drawing.value;
  const rows = activity.denials.of(id).slice(0, 6);
  return (
    <Panel title="Recent denials" scope="server">
      {rows.length === 0 ? (
        <NoEvents>None among the last 500 of all entities, and none since.</NoEvents>
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
