import type { Api } from '../api/http.js';
import type { BucketView, LeaseView, Page, WaitingView } from '../api/types.js';
import { formatCount, formatDuration } from '../model/format.js';
import { sumSlots } from '../model/slots.js';
import { api } from '../state/session.js';
import { useLoad } from '../state/use-load.js';
import { EntityLink, Link } from '../ui/link.js';
import { Panel } from '../ui/panel.js';
import { Empty, Loaded } from '../ui/states.js';
import { type Column, Table } from '../ui/table.js';

const EVERY_MS = 4_000;
const MOST_RESOURCES = 5;

/** The slots of the resources that have leases: only their buckets are read. */
async function readSlots(from: Api, signal: AbortSignal) {
  const leases = await from.get<Page<LeaseView>>('/v1/leases', { limit: '1000' }, signal);
  const resources = [...new Set(leases.items.map(({ resource }) => resource))].slice(0, MOST_RESOURCES);
  const pages = await Promise.all(
    resources.map((resource) => from.get<Page<BucketView>>('/v1/buckets', { resource, limit: '1000' }, signal)),
  );
  const nowMs = Date.now();
  const held = leases.items.filter(({ expiresAt }) => Date.parse(expiresAt) > nowMs);
  const holders = new Set(held.map(({ id }) => id)).size;
  const hasMore = leases.next !== null || pages.some(({ next }) => next !== null);
  return { leases: holders, slots: sumSlots(pages.flatMap(({ items }) => items)), hasMore };
}

export function SlotsInUse() {
  const load = useLoad('slots', (signal) => readSlots(api.value, signal), { everyMs: EVERY_MS });
  return (
    <Panel title="Slots in use" scope="store" actions={<Link to="leases">Who holds them</Link>}>
      <Loaded load={load}>
        {({ leases, slots, hasMore }) =>
          leases === 0 ? (
            <Empty>No lease is held.</Empty>
          ) : (
            <>
              <p>
                Leases held{hasMore ? ' (at least)' : ''}: <strong class="number">{formatCount(leases)}</strong>
              </p>
              <ul class="plain">
                {slots.map(({ resource, limit, used, capacity }) => (
                  <li key={`${resource} ${limit}`}>
                    <strong class="number">{formatCount(used)}</strong> of {formatCount(capacity)} <code>{limit}</code>{' '}
                    on {resource}
                  </li>
                ))}
              </ul>
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

const COLUMNS: readonly Column<WaitingView>[] = [
  { title: 'For', cell: ({ entityId, resource }) => <EntityLink id={entityId} resource={resource} /> },
  {
    title: 'Limit',
    cell: ({ limit, priority }) => <code>{priority === null ? limit : `${limit} (${priority})`}</code>,
  },
  { title: 'Depth', cell: ({ depth }) => formatCount(depth), isNumber: true },
  { title: 'Oldest', cell: ({ oldestWaitMs }) => formatDuration(oldestWaitMs), isNumber: true },
];

export function WaitingCalls() {
  const load = useLoad('waiting', (signal) => api.value.get<Page<WaitingView>>('/v1/waiting', {}, signal), {
    everyMs: 1_500,
  });
  return (
    <Panel title="Waiting calls" scope="server">
      <Loaded load={load}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty>No call waits.</Empty>
          ) : (
            <>
              <p>
                Calls: <strong class="number">{formatCount(items.reduce((sum, { depth }) => sum + depth, 0))}</strong>
              </p>
              <Table
                caption="Calls that wait, by limit"
                columns={COLUMNS}
                rows={items.slice(0, 8)}
                keyOf={({ entityId, resource, limit, priority }) =>
                  `${entityId}\n${resource}\n${limit}\n${priority ?? ''}`
                }
              />
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}
