import type { UsageView } from '../api/types.js';
import { formatCount, formatWindow } from '../model/format.js';
import { chartOf, limitsIn, totalsByEntity, valueOf } from '../model/usage-series.js';
import { Chart } from '../ui/chart.js';
import { EntityLink } from '../ui/link.js';
import { Panel } from '../ui/panel.js';
import { Table } from '../ui/table.js';

export interface UsageGroup {
  readonly label: string;
  readonly usage: readonly UsageView[];
}

const COLOURS = ['accent', 'warn'] as const;
const MOST_ROWS = 24;

/** The chart, the totals and the records of the usage that was read. */
export function UsageDetails({ groups, limit }: { readonly groups: readonly UsageGroup[]; readonly limit: string }) {
  const unit = limit === '' ? 'grants' : limit;
  const { starts, series } = chartOf(groups, limit);
  const window = groups[0]?.usage[0]?.window ?? groups[1]?.usage[0]?.window ?? 'hourly';
  const all = groups.flatMap(({ usage }) => usage);
  return (
    <div class="grid two">
      <Panel title={`${unit} in each window`} scope="store" wide>
        <Chart
          label={`${unit} in ${starts.length} windows: ${series.map(({ label, values }) => `${label} ${formatCount(total(values))}`).join(', ')}`}
          x={starts.map((_, at) => at)}
          height={200}
          kind="bars"
          xText={(at) => (starts[at] === undefined ? '' : formatWindow(window, starts[at]).slice(-11))}
          series={series.map((one, at) => ({ ...one, colour: COLOURS[at] ?? 'accent' }))}
        />
      </Panel>
      <Panel title="Totals" scope="store">
        <Table
          caption={`Total ${unit} by entity`}
          rows={totalsByEntity(all, limit).slice(0, MOST_ROWS)}
          keyOf={({ entityId }) => entityId}
          columns={[
            { title: 'Entity', cell: ({ entityId }) => <EntityLink id={entityId} resource={all[0]?.resource ?? ''} /> },
            { title: unit, cell: (row) => formatCount(row.total), isNumber: true },
          ]}
        />
      </Panel>
      <UsageRecords usage={all} unit={unit} limit={limit} />
    </div>
  );
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

interface RecordsProps {
  readonly usage: readonly UsageView[];
  readonly unit: string;
  readonly limit: string;
}

function UsageRecords({ usage, limit, unit }: RecordsProps) {
  const newest = usage.toSorted((a, b) => (a.windowStart < b.windowStart ? 1 : -1)).slice(0, MOST_ROWS);
  const limits = limit === '' ? limitsIn(usage) : [limit];
  return (
    <Panel title={`Windows, the newest first (UTC)`} scope="store">
      <Table
        caption={`Usage records: ${unit}`}
        rows={newest}
        keyOf={({ entityId, windowStart }) => `${entityId}\n${windowStart}`}
        columns={[
          { title: 'Window', cell: ({ window, windowStart }) => formatWindow(window, windowStart) },
          { title: 'Entity', cell: ({ entityId, resource }) => <EntityLink id={entityId} resource={resource} /> },
          ...limits.map((name) => ({
            title: name,
            cell: (row: UsageView) => formatCount(valueOf(row, name)),
            isNumber: true,
          })),
          { title: 'Grants', cell: ({ acquires }) => formatCount(acquires), isNumber: true },
          { title: 'Never settled', cell: ({ expired }) => formatCount(expired), isNumber: true },
        ]}
      />
      {usage.length > MOST_ROWS ? (
        <p class="muted small">
          {MOST_ROWS} of {formatCount(usage.length)} records. The CSV has all.
        </p>
      ) : null}
    </Panel>
  );
}
