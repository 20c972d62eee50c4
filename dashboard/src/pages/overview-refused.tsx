import type { Refusal } from '../model/activity.js';
import { formatCount, formatDuration } from '../model/format.js';
import type { Counted } from '../model/top-k.js';
import { activity, drawing } from '../state/live.js';
import { EntityLink } from '../ui/link.js';
import { Panel } from '../ui/panel.js';
import { Empty } from '../ui/states.js';
import { type Column, Table } from '../ui/table.js';

const ROWS = 12;

const COLUMNS: readonly Column<Counted<Refusal>>[] = [
  { title: 'Entity', cell: ({ detail }) => <EntityLink id={detail.entityId} resource={detail.resource} /> },
  { title: 'Resource', cell: ({ detail }) => detail.resource },
  {
    title: 'Refused by',
    cell: ({ detail }) =>
      detail.limit === null ? <span class="tag warn">{detail.reason}</span> : <code>{detail.limit}</code>,
  },
  {
    title: 'Of level',
    cell: ({ detail }) =>
      detail.level === detail.entityId ? 'own' : <EntityLink id={detail.level} resource={detail.resource} />,
  },
  { title: 'Fits in', cell: ({ detail }) => waitText(detail), isNumber: true },
  { title: 'Times', cell: ({ count }) => formatCount(count), isNumber: true },
];

function waitText({ retryAfterMs, reason }: Refusal): string {
  if (retryAfterMs !== null) return formatDuration(retryAfterMs);
  return reason === 'paused' ? 'until resumed' : 'never';
}

/** Who is refused now, by which limit of which level. */
export function RefusedNow() {
  void drawing.value;
  const rows = activity.refusals.top(Date.now(), ROWS);
  return (
    <Panel title="Refused now" scope="server" wide>
      {rows.length === 0 ? (
        <Empty>No call was refused in the last minute.</Empty>
      ) : (
        <Table
          caption="Calls refused in the last minute, by entity and limit"
          columns={COLUMNS}
          rows={rows}
          keyOf={({ key }) => key}
        />
      )}
    </Panel>
  );
}

/** The entities with the most calls in the last minute. */
export function TopCallers({ kind }: { readonly kind: 'refused' | 'allowed' }) {
  void drawing.value;
  const top = kind === 'refused' ? activity.refusedCallers : activity.allowedCallers;
  const rows = top.top(Date.now(), 8);
  const most = rows[0]?.count ?? 1;
  return (
    <Panel title={kind === 'refused' ? 'Top refused' : 'Top allowed'} scope="server">
      {rows.length === 0 ? <Empty>No such call in the last minute.</Empty> : null}
      <ol class="ranks">
        {rows.map(({ key, count, detail }) => (
          <li key={key}>
            <span class="rank-name">
              <EntityLink id={detail.entityId} resource={detail.resource} />{' '}
              <span class="muted">{detail.resource}</span>
            </span>
            <span class="number">{formatCount(count)}</span>
            <span class="rank-bar" aria-hidden="true">
              <i class={kind === 'refused' ? 'bad' : 'ok'} style={{ width: `${(100 * count) / most}%` }} />
            </span>
          </li>
        ))}
      </ol>
    </Panel>
  );
}
