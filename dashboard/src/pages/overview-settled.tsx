import { formatCount } from '../model/format.js';
import type { Settlement } from '../model/settlements.js';
import { activity, drawing } from '../state/live.js';
import { Panel } from '../ui/panel.js';
import { NoEvents } from '../ui/states.js';
import { type Column, Table } from '../ui/table.js';

const COLUMNS: readonly Column<Settlement>[] = [
  ['Limit', ({ limit }) => <code>{limit}</code>],
  ['Reserved', ({ reserved }) => formatCount(reserved), 'number'],
  ['Settled', ({ settled }) => formatCount(settled), 'number'],
  ['Never settled', ({ lost }) => formatCount(lost), 'number'],
];

/** What the grants of this server have reserved, and what their leases have settled. */
export function Settled() {
  void drawing.value;
  const rows = activity.settlements.rows();
  return (
    <Panel title="Reserved and settled" scope="server">
      {rows.length === 0 ? (
        <NoEvents>No grant was seen since this page was opened.</NoEvents>
      ) : (
        <>
          <Table caption="Tokens reserved and settled" columns={COLUMNS} rows={rows} keyOf={({ limit }) => limit} />
          <p class="muted small">Since this page was opened. Never settled: leases that this server has seen expire.</p>
        </>
      )}
    </Panel>
  );
}
