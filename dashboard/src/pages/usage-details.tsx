import type { UsageView } from '../api/types.js';
import { formatCount, formatWindow } from '../model/format.js';
import { chartOf, limitsIn, totalsBy, type UsageGroup, valueOf } from '../model/usage-series.js';
import { Chart } from '../ui/chart.js';
import { EntityLink } from '../ui/link.js';
import { Panel } from '../ui/panel.js';
import { type Column, Table } from '../ui/table.js';

const COLOURS = ['accent', 'warn'] as const;
const MOST_ROWS = 24;
const MOST_TOTALS = 8;

/** The chart, the totals and the records of the usage that was read. */
export function UsageDetails({ groups, limit }: { readonly groups: readonly UsageGroup[]; readonly limit: string }) {
  const unit = limit === '' ? 'grants' : limit;
  const { starts, series } = chartOf(groups, limit);
  const window = groups[0]?.usage[0]?.window ?? groups[1]?.usage[0]?.window ?? 'hourly';
  const all = groups.flatMap(({ usage }) => usage);
  const isOfOneEntity = new Set(all.map(({ entityId }) => entityId)).size === 1;
  const resources = new Set(all.map(({ resource }) => resource)).size;
  const totalOf = isOfOneEntity && resources > 1 ? 'resource' : 'entityId';
  return (
    <div class="grid side">
      <Panel title={`${unit} in each window`}>
        <Chart
          label={`${unit} in ${starts.length} ${starts.length === 1 ? 'window' : 'windows'}: ${series.map(({ label, values }) => `${label} ${formatCount(total(values))}`).join(', ')}`}
          x={starts.map((_, at) => at)}
          height={200}
          kind="bars"
          xText={(at) => (starts[at] === undefined ? '' : formatWindow(window, starts[at]).slice(-11))}
          series={series.map((one, at) => ({ ...one, colour: COLOURS[at] ?? 'accent' }))}
        />
        <p class="muted small">
          A call of an entity that cascades counts for the entity, and again for each parent that it spends from.
        </p>
      </Panel>
      <Panel title={`Totals, the ${MOST_TOTALS} largest`}>
        <Table
          caption={`Total ${unit} by ${totalOf === 'resource' ? 'resource' : 'entity'}`}
          rows={totalsBy(totalOf, all, limit).slice(0, MOST_TOTALS)}
          keyOf={({ name }) => name}
          columns={[
            totalOf === 'resource'
              ? ['Resource', ({ name }) => name]
              : ['Entity', ({ name }) => <EntityLink id={name} resource={all[0]?.resource ?? ''} />],
            [unit, (row) => formatCount(row.total), 'number'],
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
    <Panel title="Windows, the newest first (UTC)" wide>
      <Table
        caption={`Usage records: ${unit}`}
        rows={newest}
        keyOf={({ entityId, resource, windowStart }) => `${entityId}\n${resource}\n${windowStart}`}
        columns={[
          ['Window', ({ window, windowStart }) => formatWindow(window, windowStart)],
          ['Entity', ({ entityId, resource }) => <EntityLink id={entityId} resource={resource} />],
          ['Resource', ({ resource }) => resource],
          ...limits.map((name): Column<UsageView> => [
            name,
            (row: UsageView) => formatCount(valueOf(row, name)),
            'number',
          ]),
          ['Grants', ({ acquires }) => formatCount(acquires), 'number'],
          ['Never settled', ({ expired }) => formatCount(expired), 'number'],
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
