import type { Api } from '../api/http.js';
import { serverNow } from '../api/server-time.js';
import type { BucketView, LeaseView, Page, WaitingView } from '../api/types.js';
import { formatAtMost, formatCount, formatDuration } from '../model/format.js';
import { busiestBuckets, fullestSlots } from '../model/slots.js';
import { activity, drawing } from '../state/live.js';
import { api } from '../state/session.js';
import { useLoad } from '../state/use-load.js';
import { EntityLink, Link } from '../ui/link.js';
import { List } from '../ui/list.js';
import { Panel } from '../ui/panel.js';
import { Empty, Loaded } from '../ui/states.js';

const EVERY_MS = 4_000;
const MOST_BUCKETS = 8;

/** The buckets with the most leases, and how many leases there are. */
async function readSlots(from: Api, signal: AbortSignal) {
  const { items, next } = await from.get<Page<LeaseView>>('/v1/leases', { limit: '1000' }, signal);
  const nowMs = serverNow();
  const held = items.filter(({ expiresAt }) => Date.parse(expiresAt) > nowMs);
  const buckets = await Promise.all(
    busiestBuckets(held, MOST_BUCKETS).map(async (name) => {
      const { bucket } = await from.get<{ readonly bucket: BucketView | null }>('/v1/bucket', { ...name }, signal);
      return bucket ?? [];
    }),
  );
  return {
    leases: new Set(held.map(({ id }) => id)).size,
    slots: fullestSlots(buckets.flat()),
    hasMore: next !== null,
  };
}

export function SlotsInUse() {
  const load = useLoad('slots', (signal) => readSlots(api.value, signal), { everyMs: EVERY_MS });
  return (
    <Panel title="Slots in use" actions={<Link to="leases">Leases</Link>}>
      <Loaded load={load}>
        {({ leases, slots, hasMore }) =>
          leases === 0 ? (
            <Empty>No lease is held.</Empty>
          ) : (
            <>
              <p>
                Leases held{hasMore ? ' (at least)' : ''}: <strong class="number">{formatCount(leases)}</strong>
              </p>
              <List
                class="plain"
                items={slots.map(({ entityId, resource, limit, used, capacity }) => (
                  <li key={`${entityId}\n${resource}\n${limit}`}>
                    <EntityLink id={entityId} resource={resource} /> <span class="muted">{resource}</span>{' '}
                    <code>{limit}</code> <strong class="number">{formatCount(used)}</strong> of {formatCount(capacity)}
                  </li>
                ))}
              />
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

export function WaitingCalls() {
  void drawing.value;
  const nowMs = Date.now();
  const half = activity.waits.quantile(nowMs, 0.5);
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
              <List
                class="plain"
                items={items.slice(0, 8).map(({ entityId, resource, limit, priority, depth, oldestWaitMs }) => (
                  <li key={`${entityId}\n${resource}\n${limit}\n${priority ?? ''}`}>
                    <EntityLink id={entityId} resource={resource} /> <span class="muted">{resource}</span>{' '}
                    <code>{priority === null ? limit : `${limit} (${priority})`}</code>{' '}
                    <strong class="number">{formatCount(depth)}</strong>, the oldest for{' '}
                    <span class="number">{formatDuration(oldestWaitMs)}</span>
                  </li>
                ))}
              />
            </>
          )
        }
      </Loaded>
      {half === null ? null : (
        <p class="muted small">
          Calls that waited, in the last 5 to 10 min: half {formatAtMost(half)}, 95 %{' '}
          {formatAtMost(activity.waits.quantile(nowMs, 0.95))}.
        </p>
      )}
    </Panel>
  );
}
