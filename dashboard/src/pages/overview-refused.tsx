import type { Refusal } from '../model/activity.js';
import { formatCount, formatDuration } from '../model/format.js';
import type { Counted, Top } from '../model/top-k.js';
import { activity, drawing } from '../state/live.js';
import { EntityLink } from '../ui/link.js';
import { List } from '../ui/list.js';
import { Panel } from '../ui/panel.js';
import { NoEvents } from '../ui/states.js';
import { type Column, Table } from '../ui/table.js';

const ROWS = 12;

const COLUMNS: readonly Column<Counted<Refusal>>[] = [
  ['Entity', ({ detail }) => <EntityLink id={detail.entityId} resource={detail.resource} />],
  ['Resource', ({ detail }) => detail.resource],
  [
    'Refused by',
    ({ detail }) =>
      detail.limit === null ? <span class="tag warn">{detail.reason}</span> : <code>{detail.limit}</code>,
  ],
  [
    'Of level',
    ({ detail }) =>
      detail.level === detail.entityId ? 'own' : <EntityLink id={detail.level} resource={detail.resource} />,
  ],
  ['Fits in', ({ detail }) => waitText(detail), 'number'],
  ['Times', timesText, 'number'],
];

/** A count that may be too low, because other entities had the place of this one in the list before, says so. */
function timesText({ count, errorAtMost }: Pick<Counted<unknown>, 'count' | 'errorAtMost'>): string {
  return `${errorAtMost === 0 ? '' : '≥ '}${formatCount(count)}`;
}

/** Why a list has no rows. */
function Others({ top: { rows, hasOthers }, children }: { readonly top: Top<unknown>; readonly children: string }) {
  if (rows.length > 0) return null;
  return <NoEvents>{hasOthers ? 'No entity stands out: many are about equally frequent.' : children}</NoEvents>;
}

function waitText({ retryAfterMs, reason }: Refusal): string {
  if (retryAfterMs !== null) return formatDuration(retryAfterMs);
  return reason === 'paused' ? 'until resumed' : 'never';
}

/** Who is refused now, by which limit of which level. */
export function RefusedNow() {
  void drawing.value;
  const top = activity.refusals.top(Date.now(), ROWS);
  return (
    <Panel title="Refused now" scope="server">
      <Others top={top}>No refusal was seen in the last half minute.</Others>
      {top.rows.length === 0 ? null : (
        <>
          <Table
            caption="Calls refused in the last minute, by entity and limit"
            columns={COLUMNS}
            rows={top.rows}
            keyOf={({ key }) => key}
          />
          <p class="muted small">Times: in the last 30 to 60 s. Slots fit at the latest when their leases expire.</p>
        </>
      )}
    </Panel>
  );
}

/** The entities with the most calls in the last minute. */
export function TopCallers({ kind }: { readonly kind: 'refused' | 'allowed' }) {
  void drawing.value;
  const callers = kind === 'refused' ? activity.refusedCallers : activity.allowedCallers;
  const top = callers.top(Date.now(), 8);
  const { rows } = top;
  const most = rows[0]?.count ?? 1;
  return (
    <Panel
      title={kind === 'refused' ? 'Top refused' : 'Top allowed'}
      scope="server"
      actions={<small>last 30 to 60 s</small>}
    >
      <Others top={top}>No such call was seen.</Others>
      <List
        isOrdered
        class="ranks"
        items={rows.map(({ key, count, errorAtMost, detail }) => (
          <li key={key}>
            <span>
              <EntityLink id={detail.entityId} resource={detail.resource} />{' '}
              <span class="muted">{detail.resource}</span>
            </span>
            <span class="number">{timesText({ count, errorAtMost })}</span>
            <span class="rank-bar" aria-hidden="true">
              <i class={kind === 'refused' ? 'bad' : 'ok'} style={{ width: `${(100 * count) / most}%` }} />
            </span>
          </li>
        ))}
      />
    </Panel>
  );
}
